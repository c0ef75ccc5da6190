#!/usr/bin/env python3
"""The corpus of a target: a folder of inputs (what libFuzzer works on) <-> one text (what is kept).

  corpus.py unpack TARGET          corpus/TARGET.txt -> corpus/TARGET/
  corpus.py pack TARGET [FOLDER]   corpus/TARGET/ or FOLDER -> corpus/TARGET.txt, the smallest inputs
                                   first, at most 30 KB; inputs under "# kept" stay as they are
  corpus.py keep TARGET FILE       one input, a finding, under "# kept" of corpus/TARGET.txt

One input a line; printable ASCII stands for itself, the rest is \\n, \\r, \\t, \\\\ or \\xNN.
"""

import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent / "corpus"
MOST = 30_000
KEPT, FOUND = "# kept", "# found"
PLAIN = {10: "\\n", 13: "\\r", 9: "\\t", 92: "\\\\"}


def line(data):
    text = "".join(PLAIN.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in data)
    # A comment or a blank that an editor would take away must not be meant.
    text = re.sub(r"^#", r"\\x23", text)
    return re.sub(r" $", r"\\x20", text)


def data(text):
    signs = {"n": 10, "r": 13, "t": 9, "\\": 92}
    out = bytearray()
    for plain, sign, hexa in re.findall(r"([^\\])|\\(?:([nrt\\])|x(..))", text):
        out.append(ord(plain) if plain else signs[sign] if sign else int(hexa, 16))
    return bytes(out)


def kept(path):
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    start = lines.index(KEPT) + 1 if KEPT in lines else 0
    end = lines.index(FOUND) if FOUND in lines else len(lines)
    return lines[start:end]


def main():
    match sys.argv[1:]:
        case ["keep", target, file]:
            path = HERE / f"{target}.txt"
            found = line(pathlib.Path(file).read_bytes())
            lines = path.read_text().splitlines()
            # A corpus by hand alone has no mark for what was found.
            at = lines.index(FOUND) if FOUND in lines else len(lines)
            path.write_text("\n".join([*lines[:at], found, *lines[at:]]) + "\n")
            print(found)
        case ["unpack", target]:
            folder = HERE / target
            folder.mkdir(parents=True, exist_ok=True)
            for text in (HERE / f"{target}.txt").read_text().splitlines():
                if text and not text.startswith("#"):
                    found = data(text)
                    (folder / hashlib.sha1(found).hexdigest()).write_bytes(found)
        case ["pack", target, *folder]:
            path = HERE / f"{target}.txt"
            files = pathlib.Path(folder[0]) if folder else HERE / target
            by_hand = kept(path)
            have = set(by_hand)
            found, size = [], 0
            inputs = {file.read_bytes() for file in files.iterdir()} - {b""}
            for text in map(line, sorted(inputs, key=lambda i: (len(i), i))):
                if text not in have and size + len(text) < MOST:
                    size += len(text) + 1
                    found.append(text)
            path.write_text("\n".join([KEPT, *by_hand, FOUND, *found]) + "\n")
        case _:
            sys.exit(__doc__)


main()
