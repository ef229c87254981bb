"""Inbox: notifications of what happened to a person's work, on a page, over REST and by mail."""
