#!/bin/sh
# Fails unless greet.sh greets everybody by name.
actual=$(sh greet.sh Ada Grace)
expected='Hello, Ada!
Hello, Grace!'
if [ "$actual" = "$expected" ]; then
    echo "ok: everybody is greeted by name"
else
    echo "FAILED, greet.sh said:"
    echo "$actual"
    exit 1
fi
