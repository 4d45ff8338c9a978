"""Mail: written to SQL with what causes it (:func:`app.services.mail.queue.queue_mail`), sent in the background."""
