"""Accounts and their members: registering, profiles, invitations, new passwords, use of quotas."""
