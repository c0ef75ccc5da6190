# Without environment, session and parents of its own: PATH-OF-SOCKET CALL
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
told = s.recv(65536).decode()
open("scrubbed.part", "w").write(told)
os.rename("scrubbed.part", "scrubbed")
