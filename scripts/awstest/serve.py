"""Serves moto, the stand-in for AWS, on a free port of 127.0.0.1 and prints its URL.

Three things differ from `moto_server`. Requests are served one at a time: moto's transactions copy its tables and put the copy
back, which loses what another thread wrote meanwhile. And the clock of its queues can be put forward, by writing milliseconds
into the file that the only argument names, so that tests need not wait for leases to end.
And a receipt handle is good until the message is received again, where moto takes every handle that there ever was: AWS says that
with an old one "the request will succeed, but the message might not be deleted", and what must not depend on the one must be
tested with the other.
"""

import sys
import threading

import moto.core.utils
import moto.sqs.models
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


class Clock:
    ahead = 0  # milliseconds

    def read(self):
        try:
            with open(sys.argv[1], encoding="ascii") as f:
                self.ahead = int(f.read() or self.ahead)  # empty while it is being written
        except FileNotFoundError:
            pass


def main():
    clock = Clock()
    millis, seconds = moto.core.utils.unix_time_millis, moto.core.utils.unix_time
    moto.sqs.models.unix_time_millis = lambda *a: millis(*a) + clock.ahead
    moto.sqs.models.unix_time = lambda *a: seconds(*a) + clock.ahead / 1000
    moto.sqs.models.Message.had_receipt_handle = lambda self, handle: handle == self.receipt_handle

    app, one = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def serial(environ, start_response):
        with one:
            clock.read()
            return [b"".join(app(environ, start_response))]

    class Quiet(MotoRequestHandler):
        def log(self, *_args):
            pass

    server = make_server("127.0.0.1", 0, serial, threaded=True, request_handler=Quiet)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
