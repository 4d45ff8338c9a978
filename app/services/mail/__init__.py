"""Mail: written to SQL with what causes it (:func:`app.services.mail.letters.queue_mail`), sent in the background."""
