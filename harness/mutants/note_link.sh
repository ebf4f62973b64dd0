#!/bin/sh
# note_link.sh FILE COMMAND...: writes the folder and the command, an argument a line, into FILE,
# then runs the command. A mutant of the program is linked in the same way.
file=$1
shift
{ pwd; printf '%s\n' "$@"; } >"$file" || exit 1
exec "$@"
