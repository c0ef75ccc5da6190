# A command that tries to answer a request by itself. It gets the socket, the program `agentctl` and the
# request; what each way was told goes to a file of the way's name.
import base64, json, os, socket, subprocess, sys, time

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.02)
    return open(name).read()

path, agentctl, request = wait_for("target").split("\n")
approve = {"request_id": request, "decision": "allow"}
call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.approve", "params": approve})

def connected():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(path)
    return s

def answer(s, name, text=None):
    if text is None:
        text = call + "\n"
    s.sendall(text.encode())
    told = b""
    while b"not_authorised" not in told and b'"result"' not in told:
        more = s.recv(65536)
        if not more:
            break
        told += more
    tell(name, told.decode(errors="replace"))

def tell(name, text):
    with open(name + ".part", "w") as f:
        f.write(text)
    os.rename(name + ".part", name)

def fork(child):
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    return pid

def raw():
    answer(connected(), "raw")

def agentctl_rpc():
    done = subprocess.run([agentctl, "--socket", path, "--no-start", "rpc", "session.approve", json.dumps(approve)],
                          capture_output=True, text=True)
    tell("agentctl", done.stdout + done.stderr)

def agentctl_approve():
    # As a script would write it: which daemon is in the environment.
    done = subprocess.run([agentctl, "approve", request], capture_output=True, text=True)
    tell("approve", f"exit {done.returncode}: {done.stdout}{done.stderr}")

def orphan():
    def child():
        os.setsid()
        def grandchild():
            while os.getppid() == parent:
                time.sleep(0.01)
            answer(connected(), "orphan")
        parent = os.getpid()
        fork(grandchild)
    os.waitpid(fork(child), 0)

def scrubbed():
    # Nothing of its environment, its session or its parents is left.
    def child():
        os.setsid()
        def grandchild():
            os.execve(sys.executable, [sys.executable, "scrubbed.py", path, call], {})
        fork(grandchild)
    os.waitpid(fork(child), 0)

def inherited():
    # The process that connected is still there, its child speaks.
    s = connected()
    os.waitpid(fork(lambda: answer(s, "inherited")), 0)

def dead_connector():
    # The process that connected has gone, and left the descriptor behind.
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    def child():
        s = connected()
        socket.send_fds(theirs, [b"x"], [s.fileno()])
    os.waitpid(fork(child), 0)
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    left = socket.socket(fileno=fds[0])
    left.settimeout(30)
    answer(left, "dead")

def post():
    answer(connected(), "post", f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(call)}\r\n\r\n{call}")

def header():
    answer(connected(), "header", f"Content-Length: {len(call)}\r\n\r\n{call}")

def websocket():
    s = connected()
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(b"0" * 16) + b"\r\n\r\n")
    told = b""
    while b"\r\n\r\n" not in told:
        told += s.recv(65536)
    body = call.encode()
    s.sendall(b"\x81\xfe" + len(body).to_bytes(2, "big") + b"\0\0\0\0" + body)
    answer(s, "websocket", "")

def claims():
    # It says what it is not.
    s = connected()
    s.sendall(b'{"jsonrpc":"2.0","id":7,"method":"daemon.hello","params":{"name":"a person","role":"controller"}}\n')
    hello = s.recv(65536).decode()
    answer(s, "claims")
    tell("hello", hello)

for way in (raw, agentctl_rpc, agentctl_approve, orphan, scrubbed, inherited, dead_connector, post, header, websocket, claims):
    way()
for name in ("orphan", "scrubbed"):
    wait_for(name)
print("tried everything")
