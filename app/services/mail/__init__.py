"""Mail: queued in SQL by the transaction that causes it (:func:`app.services.mail.letters.queue_mail`), sent in the
background."""
