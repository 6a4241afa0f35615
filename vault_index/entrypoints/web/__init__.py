"""The HTTP API and the pages of `lessons serve`: a module for each subject, with its routes and its page.

    GET /            a page: frame and first contents, for anybody of this machine
    GET /page/...    a fragment that the page's script loads into it
    GET /page/private/...   the same for whoever has the page's key; other changes go to /api or /page

A fragment is HTML. The frame holds no private data, so that it needs no key and no cookie: the script
keeps the key in the browser's storage, which no other port of this machine reads, and sends it as
`Authorization`.
"""
