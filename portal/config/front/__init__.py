"""The front: the only part of the portal that talks to browsers.

It answers tiles itself and hands every other request, once it is complete, to the API processes
over a UNIX socket. So a slow call never holds up a tile, and a slow client never a call.
"""
