#!/bin/sh
# Greets everybody who is named on the command line.
for name in "$@"; do
    echo "Hello, $nmae!"
done
