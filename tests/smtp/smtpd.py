"""An SMTP server for tests: aiosmtpd, which accepts mails or fails as its mode specifies.

usage: smtpd.py [--tls starttls|wrapper --cert FILE --key FILE] [--user NAME --password TEXT] [--mode MODE]

Prints one line of JSON when it listens, {"port": N}, and one for each accepted mail. A line on standard input sets the
mode; the server exits at the end of standard input.

modes: accept; mail:CODE, rcpt:CODE, data:CODE (rejects with that code); stall:greeting, stall:data (never responds);
drop:greeting, drop:data (closes the connection); greeting:CODE (rejects every connection); late:data (accepts the
mail, and closes the connection before the response)
"""

import argparse
import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class RejectingProtocol(asyncio.Protocol):
    """Fails a connection at the greeting."""

    def __init__(self, how):
        self.how = how

    def connection_made(self, transport):
        if self.how != "stall":
            if self.how != "drop":
                transport.write(f"{self.how} not now\r\n".encode())
            transport.close()


class MailHandler:
    def __init__(self, mode):
        self.mode = mode

    async def step(self, name, server):
        command, _, code = self.mode.partition(":")
        if command == name and code:
            return f"{code} refused by the test, <ann@example.org>"
        if self.mode == f"stall:{name}":
            await asyncio.Event().wait()
        if self.mode == f"drop:{name}":
            server.transport.abort()
            return "421 gone"
        return None

    async def handle_MAIL(self, server, session, envelope, address, options):
        rejection = await self.step("mail", server)
        if rejection is None:
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return rejection or "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        rejection = await self.step("rcpt", server)
        if rejection is None:
            envelope.rcpt_tos.append(address)
        return rejection or "250 OK"

    async def handle_DATA(self, server, session, envelope):
        rejection = await self.step("data", server)
        if rejection is not None:
            return rejection
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "hello": session.host_name,
            "tls": session.ssl is not None or server.transport.get_extra_info("ssl_object") is not None,
            "user": session.auth_data.login.decode() if session.auth_data else None,
            "data": envelope.content.decode(),
        }
        print(json.dumps(mail), flush=True)
        if self.mode == "late:data":
            server.transport.abort()
        return "250 OK"


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls", choices=("starttls", "wrapper"))
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--utf8", action="store_true")
    parser.add_argument("--mode", default="accept")
    arguments = parser.parse_args()
    handler = MailHandler(arguments.mode)
    context = None
    if arguments.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.cert, arguments.key)

    def authenticate(server, session, envelope, mechanism, data):
        expected = (arguments.user.encode(), arguments.password.encode())
        matches = isinstance(data, LoginPassword) and (data.login, data.password) == expected
        return AuthResult(success=matches, handled=False, auth_data=data)

    def connection():
        first, _, second = handler.mode.partition(":")
        if second == "greeting":
            return RejectingProtocol(first)
        if first == "greeting":
            return RejectingProtocol(second)
        return SMTP(
            handler,
            hostname="mail.example",
            enable_SMTPUTF8=arguments.utf8,
            tls_context=context if arguments.tls == "starttls" else None,
            require_starttls=arguments.tls == "starttls",
            authenticator=authenticate if arguments.user else None,
            auth_required=arguments.user is not None,
            auth_require_tls=False,
        )

    loop = asyncio.get_running_loop()
    wrapper = context if arguments.tls == "wrapper" else None
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=wrapper)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        handler.mode = line.decode().strip()
        print(json.dumps({"mode": handler.mode}), flush=True)


asyncio.run(main())
