#!/usr/bin/env python3
"""A model server for trials of packages and units: Anthropic's API with fixed answers, on 127.0.0.1.

model_server.py PORT [LOG]

A prompt with "slow" gets 40 words in 20 s; one with "bash" gets a call of Bash, then text; others get one sentence.
LOG gets one line for each model call: the key that came with it, and the end of the conversation.
"""
import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = sys.argv[2] if len(sys.argv) > 2 else None


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send(self, status, kind):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()

    def do_GET(self):
        self.send(200, "application/json")
        self.wfile.write(b'{"data":[{"id":"claude-sonnet-5-5","type":"model"}],"has_more":false}')

    def event(self, kind, **fields):
        data = json.dumps({"type": kind, **fields})
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = json.dumps(body.get("messages", [{}])[-1])
        is_result = "tool_result" in last
        command = None if is_result else re.search(r"bash: ([^\"\\]+)", last)
        if LOG:
            with open(LOG, "a", encoding="utf-8") as log:
                log.write(f"{self.headers.get('x-api-key')} {'result' if is_result else last[-200:]}\n")
        self.send(200, "text/event-stream")
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}
        self.event("message_start", message=message)
        if command and body.get("tools"):
            call = {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", "name": "Bash", "input": {}}
            self.event("content_block_start", index=0, content_block=call)
            text = json.dumps({"command": command[1], "description": "a trial"})
            self.event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": text})
        else:
            self.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            is_slow = "slow" in last
            words = [f"word{n} " for n in range(40)] if is_slow else ["The ", "model ", "server ", "answers."]
            for word in words:
                self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
                time.sleep(0.5 if is_slow else 0)
        self.event("content_block_stop", index=0)
        reason = "tool_use" if command and body.get("tools") else "end_turn"
        self.event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
        self.event("message_stop")


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
