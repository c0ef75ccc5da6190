//! The table of programs and their escape options.
//!
//! It lists the arguments of each program that have one of these effects:
//!
//! - run another program
//! - load code or settings named on the command line
//! - write or remove files in an otherwise read-only program
//! - send a local file away
//! - change the system
//! - work on a project outside the workspace
//!
//! The notation of the rows is explained at [`Program`]; the programs' manuals document the options.
//! Programs that only run other commands (`env`, `sudo`, `sh`) are in
//! [`crate::shell::programs::inner_commands`].

use crate::shell::programs::special;
use crate::shell::programs::table::{FileEffect, Program, Table};

const fn p(names: &'static str, ask: &'static str) -> Program {
    Program::new(names, ask)
}

/// Rows of programs that work on files.
const fn tools(rows: &'static [Program]) -> Table {
    Table { rows, projects: false, loose: false, local: true }
}

/// Rows of programs that work on machines and services.
const fn services(rows: &'static [Program]) -> Table {
    Table { rows, projects: false, loose: false, local: false }
}

/// Rows of programs that work on a project.
const fn projects(rows: &'static [Program]) -> Table {
    Table { rows, projects: true, loose: false, local: true }
}

/// All rows.
pub(crate) const PROGRAMS: &[Table] = &[
    tools(FILES),
    tools(TEXT),
    tools(SEARCH),
    tools(ARCHIVES),
    tools(NETWORK),
    tools(GIT),
    projects(BUILD),
    projects(RUST),
    tools(SCRIPTS),
    Table { rows: NODE, projects: true, loose: true, local: true },
    projects(PYTHON),
    projects(GO),
    projects(OTHER_CODE),
    services(DATA),
    services(CLOUD),
    services(SYSTEM),
];

/// Files and folders.
const FILES: &[Program] = &[
    p("ls|dir|vdir|stat|basename|dirname|realpath|readlink|du|df|pwd|which|whereis|type|lsblk|cksum|sum|md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|pathchk|namei|exa|eza|lsd|dust|duf|procs|lsattr|getfacl|gls|gstat|hexyl", "")
        .kind(FileEffect::Reads),
    // `-C` compiles a magic file, `-m` loads one, `-z` runs decompressors.
    p("file", "-C --compile -m --magic-file -z --uncompress -Z --uncompress-noreport").value("-F -f -P -e").kind(FileEffect::Reads),
    // `-o` writes the listing; `-R` runs tree again.
    p("tree", "-o --output -R").kind(FileEffect::Reads),
    p("mkdir|rmdir|touch|unlink|tee|truncate|shred|fallocate|mkfifo|mktemp|sponge|dos2unix|unix2dos|gtee|gtouch|gmkdir|gtruncate|sd|optipng|jpegoptim|pngquant", "").kind(FileEffect::Writes),
    p("rm|grm", "--no-preserve-root").kind(FileEffect::Writes).extra_check(special::remove),
    p("mv|ln|link|chattr|setfacl|setfattr|gmv|gln", "").kind(FileEffect::Writes),
    // A file named `--reference=x` that a glob matches decides the mode or owner of all others.
    p("chmod|chown|chgrp|gchmod|gchown", "--reference").kind(FileEffect::Writes),
    p("cp|gcp", "").kind(FileEffect::Copies),
    // `--strip-program` runs a program.
    p("install|ginstall", "--strip-program").kind(FileEffect::Copies),
    // Devices are outside the workspace.
    p("dd|gdd", "").kind(FileEffect::Writes),
    // Perl code as its first argument.
    p("rename|prename|file-rename|perl-rename", "*").fine("--version -V --help -h").kind(FileEffect::Writes),
];

/// Text tools.
const TEXT: &[Program] = &[
    p("xsv|qsv|csvcut|csvlook|csvgrep|csvstat|csvjson|csvsort|csvjoin|csvstack", "-o --output split partition").kind(FileEffect::Reads),
    p("csvsql|csvpy", "*").fine("--help --version"),
    p("aspell|hunspell", "--conf --per-conf --add-filter --add-filter-path --data-dir --home-dir -c check").kind(FileEffect::Reads),
    p("perltidy|perlcritic|luacheck|selene|stylua", "-b -o -pro --profile -bext --config --config-path -f --formatter --outfile -w --backup-and-modify-in-place"),
    p("ast-grep|comby", "-c --config -r --rule -U --update-all -i --interactive -in-place -f -config -templates -d@ -directory@ new lsp"),
    p("xgettext|msgfmt|msgmerge|msgcat|msgattrib", "-o@ --output@ --output-file@ -p@ --output-dir@ -d@ -f --files-from -D@ --directory@").kind(FileEffect::Writes),
    p("inkscape", "--actions --shell -o@ --export-filename@ --pipe -p --extension-directory --app-id-tag"),
    p("cat|tac|head|tail|wc|nl|cut|paste|tr|rev|fold|fmt|expand|unexpand|comm|join|od|hexdump|hd|strings|cmp|diff|column|colrm|numfmt|factor|seq|echo|look|tsort|pr|ul|zcat|bzcat|xzcat|zstdcat|lzcat|zgrep|bzgrep|xzgrep|zegrep|zfgrep|rgrep|egrep|fgrep|grep|gcat|ghead|gtail|gwc|gcut|gtr|ggrep|gegrep|gecho|zdiff|zcmp|xzdiff|gcomm|gjoin|gpaste|gnl", "")
        .kind(FileEffect::Reads),
    p("true|false|sleep|expr|yes|whoami|id|groups|uname|arch|nproc|tty|users|who|w|uptime|cal|date +|printenv|locale|getconf|free|vmstat|ps|pgrep|pidof|getent|lscpu|lsusb|lspci|test|[|last|lastlog|lsmod|pstree|pmap|pwdx|ipcs|tput|clear|reset|logname|dircolors|sync|uuidgen|pwgen|mcookie|pinky|pg_isready", "")
        .kind(FileEffect::Reads)
        .extra_check(special::test),
    // `-v` assigns to a variable whose subscript is evaluated.
    p("printf", "-v").kind(FileEffect::Reads).extra_check(special::printf),
    p("sort|gsort", "-o --output --compress-program -T --temporary-directory --files0-from").value("-k -t -S --key --field-separator --buffer-size --parallel --batch-size").kind(FileEffect::Reads),
    // In old syntax, the second operand is written.
    p("ptx", "-G --traditional").kind(FileEffect::Reads),
    // The second operand is written.
    p("uniq|guniq", "").kind(FileEffect::Reads).extra_check(special::uniq),
    p("xxd", "").kind(FileEffect::Reads).extra_check(special::xxd),
    p("shuf|gshuf", "-o --output").value("-n -i --head-count --input-range").kind(FileEffect::Reads),
    // Some systems have `-o`.
    p("gbase64|base64|base32|basenc|uuencode", "-o --output").value("-w -i --wrap").kind(FileEffect::Reads),
    // Their input decides what they write or run.
    p("uudecode|unshar|pax", "*").fine("--version --help"),
    p("iconv|recode", "-o --output").value("-f -t").kind(FileEffect::Reads),
    p("split|gsplit", "--filter").kind(FileEffect::Writes),
    p("csplit|gcsplit", "-f@ --prefix@").kind(FileEffect::Writes),
    p("sdiff|diff3", "-o --output --diff-program").kind(FileEffect::Reads),
    p("colordiff|icdiff|difft|delta", "--config --pager --diff-program --override --output --banner").kind(FileEffect::Tool),
    // `e`, `w` and `s///e` in a script run programs or write files, and so do the listed options.
    p("sed|gsed", "-i -I --in-place -f --file").value("-e --expression -l --line-length").extra_check(special::sed).kind(FileEffect::Reads),
    // awk programs run commands by `system()` and pipes, and write files. `-f` loads a program from a
    // file.
    p("awk|gawk|mawk|nawk|original-awk", "-f --file -i --include -l --load -E --exec -o --pretty-print -p --profile -d --dump-variables -D --debug -W --assign=").value("-v -F -e --source --assign --field-separator").extra_check(special::awk).kind(FileEffect::Reads),
    // They run commands that are typed or read from a file, and `!cmd`.
    p("ed|red|ex|vi|vim|vim.basic|vim.tiny|rvim|rview|vimtutor|editor|sensible-editor|nvim|view|gvim|vimdiff|emacs|emacsclient|nano|pico|micro|joe|mcedit|mc|kak|hx|helix|code|subl|dc|m4|vipe|ranger|lf|nnn", "**").fine("--version --help -h -V"),
    // `+cmd` runs a command, `-o` writes a log file, and key files define commands. Commands and key
    // files can start editors and shells.
    p("less|more|most|pg|pager|sensible-pager|zless|bzless|lzless|xzless|zstdless|zmore|bzmore|xzmore", "-k --lesskey-file --lesskey-src --lesskey-content -o -O --log-file --LOG-FILE -T --tag-file -P -t --tag").kind(FileEffect::Reads).extra_check(special::plus),
    p("bat|batcat", "--pager --config-file --generate-config-file --map-syntax --source --target cache --diff").value("-l --language -r --line-range -H --highlight-line --theme --style").kind(FileEffect::Reads),
    p("man|info|apropos|whatis|mandb", "-P --pager -H --html -C --config-file -M --manpath -l --local-file -o --output --subnodes -d --directory -f --file -X --gxditview -Z --ditroff -T --troff-device -t --troff -p --preprocessor --init-file --restore --dribble").kind(FileEffect::Reads).extra_check(special::man),
    p("jq|gojq|jaq", "-f --from-file -L --library-path").value("--arg --argjson --indent --slurpfile --rawfile").kind(FileEffect::Reads).extra_check(special::jq),
    // `-i` edits in place, `-s` splits into files.
    p("yq|xq|tomlq", "-i --inplace --in-place -s --split-exp --split-exp-file -f --from-file --expression-file -L --library-path").kind(FileEffect::Reads).extra_check(special::yq),
    p("fx|gron|jless|dasel", "*").fine("--version --help -h"),
    p("mlr|miller", "-I -f -s --ofmt-file tee split --prepipe --prepipex --load --mload --from-script").kind(FileEffect::Reads).extra_check(special::mlr),
    p("xmllint", "-o --output -output --shell -shell --catalogs --path -path --load-trace --schema@ --dtdvalid@ --xinclude").kind(FileEffect::Reads),
    p("xsltproc", "-o --output -output --writesubtree --path --load-trace").kind(FileEffect::Reads),
    p("envsubst|getopt", "").kind(FileEffect::Reads),
    p("bc", "-f --file").kind(FileEffect::Reads),
    p("patch", "-g --get -Y@ -B@ --prefix@ --basename-prefix@ -z@ --suffix@ -o --output -r --reject-file -d@ --directory@ -e --ed").value("-p -i --input -F -D -B -Y -z -V").kind(FileEffect::Writes),
    p("pandoc", "-o --output -F --filter -L --lua-filter --pdf-engine --pdf-engine-opt --data-dir -d --defaults --template --extract-media -H --include-in-header -B -A --include-before-body --include-after-body --syntax-definition --log --csl --reference-doc --highlight-style --print-highlight-style lua server").value("-f -t -r -w --from --to --read --write").fine("").kind(FileEffect::Reads).extra_check(special::pandoc),
    p("dot|neato|fdp|sfdp|circo|twopi|osage", "-o -O -l -c").value("-T -K -G -N -E").kind(FileEffect::Reads),
    p("identify", "-write -script -define -process -set -moments @").kind(FileEffect::Reads).extra_check(special::magick),
    p("convert|magick|composite|montage", "-write -script -define -process -profile -set").kind(FileEffect::Copies).extra_check(special::magick),
    p("mogrify", "-write -script -define -process -profile -set -path@").kind(FileEffect::Writes).extra_check(special::magick),
    p("xmlstarlet", "-L --inplace"),
    p("tidy", "-m -modify -o -output -output-file --output-file -f -file --write-back -config --config"),
    p("soffice|libreoffice|radare2|r2|logrotate", "**").fine("--version --help -h -v"),
    p("ffmpeg|ffprobe|ffplay", "@ -filter_script -filter_complex_script -f -protocol_whitelist -report -progress -dump_attachment -init_hw_device").fine("-vf -af -vframes -frames -frames:v -frames:a -crf -movflags -pix_fmt -bufsize -filter -filter:v -filter:a -filter_complex -framerate -profile:v -preset -ffmpeg -show_format -show_streams -show_entries -select_streams -print_format -of").extra_check(special::protocols),
    // PostScript is a language that opens files.
    p("gs|ghostscript", "*").fine("--version --help -v -h"),
    p("groff|nroff|troff|pic|eqn|tbl|soelim", "-U -P -L -l -X -F -M -m -I -x"),
    p("exiftool", "-if -config -o -execute -@ -stay_open -ImageDescription -w -W -out -tagOut -p").kind(FileEffect::Writes),
    p("latex|pdflatex|xelatex|lualatex|luatex|tex|pdftex", "--shell-escape -shell-escape --enable-write18 -enable-write18 --shell-restricted --output-directory@ -output-directory@ --fmt -fmt --lua --luaconfonly -cnf-line --cnf-line -jobname@ --jobname@ @").extra_check(special::latex),
    p("latexmk", "-r -e -pdflatex -latex -xelatex -lualatex -usepretex -new-viewer -pv -pvc -outdir@ -auxdir@ -cd -shell-escape -C"),
    p("asciidoctor|asciidoc", "-r --require -o --out-file -D --destination-dir -T --template-dir -E --template-engine -I --load-path -B@ -S -f --conf-file --filter -a"),
    p("script|ttyrec", "**"),
];

/// Searching.
const SEARCH: &[Program] = &[
    p("find|gfind|bfs", "-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf -files0-from").kind(FileEffect::Reads),
    p("fd|fdfind", "-x --exec -X --exec-batch --ignore-file --gen-completions").value("-e --extension -t --type -d --max-depth -E --exclude -S --size -c --color -j --threads").kind(FileEffect::Reads),
    p("rg|ripgrep", "--pre --hostname-bin -z --search-zip --generate").value("-e --regexp -g --glob --iglob -t --type -T --type-not -A -B -C -m --max-count -d --max-depth -f --file -r --replace -E --encoding -j --threads -M --color --colors --sort --engine --type-add --pre-glob --ignore-file").fine("--pretty --pre-glob --no-pre --ignore-file --no-config").kind(FileEffect::Reads),
    p("ag", "--pager -z --search-zip").value("-G -m --ignore -p").kind(FileEffect::Reads),
    p("ack|ack-grep", "--pager --ackrc --output --dump --files-from --create-ackrc --ignore-ack-defaults").value("-A -B -C -m").kind(FileEffect::Reads),
    p("ugrep|ug", "--filter --pager --config --save-config --query -Q --view --filter-magic-label --tee").value("-e -g -t -A -B -C").kind(FileEffect::Reads),
    p("locate|plocate|mlocate", "").kind(FileEffect::Reads),
    p("updatedb", "*"),
    p("fzf|sk|peco|percol", "--bind --preview --execute --cmd -c --listen --history --reload --become --with-shell"),
    p("ctags|etags|cscope|global|gtags", "--options -f -o --filter --_interactive --options-maybe --optlib-dir -p").kind(FileEffect::Tool),
    p("cloc|tokei|scc", "--config --extract-with --diff-list-file --out --report-file --report_file --sql --output --read-lang-def --force-lang-def -o --lang-no-ext --categorized --counted --ignored --found").kind(FileEffect::Reads),
];

/// Archives.
const ARCHIVES: &[Program] = &[
    p("tar|gtar|bsdtar", "--to-command -I --use-compress-program --checkpoint-action --rsh-command --rmt-command -F --info-script --new-volume-script -T --files-from --files0-from --remove-files -P --absolute-names --absolute-paths --index-file -g --listed-incremental --volno-file -C@ --directory@ --cd@ --force-local -f@ --file@ --one-top-level@")
        .value("-b -H --format --exclude -X --strip-components --transform --xform --owner --group --mode --mtime -L -N -V")
        .fine("--format --exclude --exclude-from --file-mode --list")
        .extra_check(special::tar),
    p("zip", "-T -TT --test --unzip-command -m --move -@ -O@ --out@ -lf --logfile-path").value("-x -i -n -t -tt -P -s").extra_check(special::archive).kind(FileEffect::Tool),
    p("unzip", "-d@").value("-x -P").kind(FileEffect::Tool).extra_check(special::archive),
    p("7z|7za|7zr|p7zip", "-sdel -si -o@ -w -sfx -y").extra_check(special::seven),
    p("rar|unrar", "-ilog -df -dr -dw -sfx -ep3 -z").kind(FileEffect::Tool),
    p("gzip|gunzip|bzip2|bunzip2|xz|unxz|lzma|unlzma|lz4|brotli|compress|uncompress|pigz", "-o@ --output@ -S --files --files0").kind(FileEffect::Writes),
    p("zstd|unzstd", "-o@ --output-dir-flat@ --output-dir-mirror@ --filelist --rm -D --patch-from").kind(FileEffect::Writes),
    p("cpio", "--rsh-command -F --file -i --extract -O -o --create -p --pass-through -D@ --directory@ -I -E -A --no-absolute-filenames"),
    p("ar|ranlib", "--plugin --output -M").kind(FileEffect::Writes),
    p("jar", "-C@ -f@ -m --dir@ -J").kind(FileEffect::Writes),
];

/// The network.
const NETWORK: &[Program] = &[
    // They send local files to a service.
    p("vsce|ovsx|conan|surge|gh-pages|eas|codecov|coveralls|sentry-cli|railway|supabase|pastebinit|gist|wgetpaste|snyk", "*").fine("--version --help list search show status whoami test"),
    p("wrk|wrk2", "-s --script"),
    p("ab", "-p -u -g -e -E"),
    p("hey", "-D -o"),
    p("vegeta", "-targets -body -output -cert -key -root-certs -laddr"),
    p("siege", "-f --file -R --rc -l --log"),
    p("iperf|iperf3", "-s --server -D --daemon -F --file --logfile -I --pidfile"),
    p("restic|borg|duplicity|rdiff-backup", "**").fine("--version --help"),
    p("skopeo|crane|cosign", "copy sync delete login logout push append mutate sign attest attach upload export --authfile --creds --cert-dir --policy --command-timeout-file -o@ --output@ --key --tarball").kind(FileEffect::Tool),
    p("syft|grype|dive|trufflehog|pip-audit|safety", "-c --config --file -o@ --output@ --fix -r@ --requirement@ --template -t --json-output --save-json --policy-file").kind(FileEffect::Tool),
    p("curl", "-o --output -O --remote-name --remote-name-all --output-dir -J --remote-header-name -K --config -T --upload-file -D --dump-header -c --cookie-jar --trace --trace-ascii --trace-config --stderr --libcurl --etag-save --etag-compare --hsts --alt-svc -E --cert --key --engine --unix-socket --abstract-unix-socket -n --netrc --netrc-file --netrc-optional -Q --quote --variable --expand --expand-data --expand-data-ascii --expand-data-binary --expand-data-raw --expand-data-urlencode --expand-form --expand-form-string --expand-json --expand-header --expand-proxy-header --expand-url --expand-url-query --expand-user --expand-cookie --expand-referer --expand-user-agent --proxy-cert --proxy-key --preproxy --socks5 --egd-file --random-file --krb --proto-default --mail-from --mail-rcpt --telnet-option -t --ssl-sessions --doh-url --connect-to --resolve --aws-sigv4 --proto-redir --pubkey --create-file-mode --create-dirs --cacert@ --capath@ --pinnedpubkey@")
        .value("-X --request -H --header -d --data -A --user-agent -e --referer -m --max-time -u --user -x --proxy -b --cookie -F --form -w --write-out --connect-timeout --retry -r --range -C -y -Y -z -P --url --json --limit-rate -U --interface --max-redirs --data-raw --data-binary --data-urlencode --data-ascii --form-string --retry-delay --retry-max-time --ciphers --tls-max")
        .fine("--compressed --data --form --cookie --proxy --key-type --request --header --url --data-raw --form-string --cert-status --cert-type --connect-timeout --retry-connrefused --create-dirs --output-null --no-output --remote-time --dns-servers --no-progress-meter")
        .extra_check(special::curl),
    p("wget|wget2", "-O --output-document -P --directory-prefix -o --output-file -a --append-output --post-file --body-file -i --input-file --config -e --execute --use-askpass --load-cookies --save-cookies --certificate --private-key --ca-certificate --warc-file --rejected-log --unlink -b --background --post-data --body-data --method --start-pos --hsts-file --local-encoding --egd-file --random-file --crl-file --pinnedpubkey --input-metalink --metalink-file --delete-after --no-config --force-directories --preserve-permissions --use-proxy --convert-file-only --warc-tempdir --plugin --plugin-dirs --local-plugin --stats-all --keep-session-cookies --secure-protocol-file")
        .value("-t --tries -T --timeout -U --user-agent --header -l -A -R -D -Q -w --wait")
        .fine("--method --post-data --quiet --spider --keep-session-cookies"),
    p("aria2c|axel", "--conf-path --on-download-complete --on-download-start --on-download-error --on-download-stop --on-download-pause --on-bt-download-complete -d --dir -o --out --output -i --input-file --load-cookies --save-cookies --log -l --save-session --certificate --private-key --netrc-path --hash-check-only --enable-rpc --server-stat-of -c"),
    p("http|https|httpie|xh|xhs|curlie|hurl", "-o --output -d --download --session --session-read-only --cert --cert-key --config --default-scheme --auth-type --plugin --raw --output-dir --report-html --report-json -F -K").extra_check(special::http_items),
    p("scp", "-S -o -F -i -J -D -P@ -X -c").extra_check(special::remote),
    p("rsync", "-e --rsh --rsync-path --daemon --config --password-file --log-file --write-batch --only-write-batch --read-batch --remove-source-files --remove-sent-files -M --remote-option --files-from --temp-dir -T --partial-dir --backup-dir@ --compare-dest --copy-dest --link-dest --dparam --early-input --copy-devices --write-devices --outbuf --sockopts --log-file-format --include-from --exclude-from --filter -f --debug-command").value("--exclude --include --max-size --min-size --bwlimit --timeout --port -B").fine("--exclude --include --files --filter --debug").kind(FileEffect::Copies).extra_check(special::rsync),
    p("sftp|ftp|lftp|tftp|ncftp|rclone|s3cmd|gsutil|mc|s5cmd|azcopy|croc|magic-wormhole|wormhole|ssh-copy-id|sendmail|mail|mailx|mutt|msmtp|swaks|uuto|rcp|rlogin|rsh", "**").fine("--version --help -h version help"),
    p("nc|netcat|ncat|nmap", "-e -c -L --exec --sh-exec --lua-exec -U --unixsock --proxy -l --listen --script --script-args --datadir -o -oN -oX -oG -oA -oS -iL --resume --stylesheet --servicedb --versiondb --append-output -iR -x -P -k --ssl-cert --ssl-key --ssl-trustfile --output --hex-dump --idle-timeout-file").value("-w -p -s -X -i"),
    p("telnet", "-n -l -e -X"),
    p("tcpdump|tshark|wireshark|dumpcap|ngrep|tcpflow", "-w -z -Z -X -G -C -F -r@ -O -o -e --lua --postrotate-command -P -I -b"),
    p("dig|host|nslookup|drill|delv", "-f -k -b -c@"),
    p("ping|ping6|traceroute|tracepath|mtr|whois|ss|netstat|lsof|arp", "-K --kill -D --diag -F --filter -R").kind(FileEffect::Tool).extra_check(special::sets_arp),
    p("openssl", "-out -keyout -config -engine -writerand -rand -provider-path -provider -passin -passout -pass -CAfile@ -sess_out -keylogfile -certout ! -outdir -msgfile -signer_out -respout -CAserial -certsout -certsopt s_time srp rehash http s_server enc req ca ts engine speed s_client").fine("-rand_serial"),
    p("gpg|gpg2|gpgv|gpgsm|age|rage|sops|minisign|signify", "-o --output --homedir --options --exec-path --photo-viewer --passphrase-file --passphrase-fd --import --export-secret-keys --export-secret-subkeys --delete-keys --delete-secret-keys --edit-key --gen-key --full-gen-key --quick-gen-key --keyring --no-default-keyring --load-extension --agent-program --dirmngr-program --keyserver --send-keys --command-fd --command-file --decrypt -d --sign -s --clearsign --clear-sign --detach-sign -b --logger-file --status-file --attribute-file --pinentry-mode --log-file --trust-model -i exec-env exec-file --in-place edit -e --encrypt -c --symmetric --store --dearmor --enarmor --recv-keys --receive-keys --search-keys --refresh-keys --fetch-keys").value("-r --recipient -u --local-user").extra_check(special::gpg),
    p("ssh-keygen|ssh-add", "**").fine("-l -L -F -B -v -E md5 sha256 -H"),
    p("ssh-keyscan", "-f -D -O"),
];

/// git. A row without a verb covers the options before the verb, and all verbs.
const GIT: &[Program] = &[
    p("git", "").value("-C -c --git-dir --work-tree --namespace --config-env --exec-path --super-prefix").fine("-c --config -C --exec --output --command --shell --config-env --plugin --init --script --program --settings").kind(FileEffect::Reads).extra_check(special::git),
    // These options run external programs for diffs, conversion or filters, or write output files.
    p("git diff|git log|git show|git whatchanged|git diff-tree|git diff-index|git diff-files|git range-diff|git reflog|git shortlog|git rev-list|git diff-pairs", "--ext-diff --textconv --output --show-signature -O --open-files-in-pager").value("-n -S -G --author --since --until --format -U -L --grep --max-count").fine("--oneline --output-indicator-new --output-indicator-old --output-indicator-context --ours").kind(FileEffect::Reads),
    p("git stash", "--ext-diff --textconv --output --show-signature --pathspec-from-file@").value("-m --message"),
    p("git blame|git annotate|git cat-file|git check-attr", "--textconv --filters --contents@ --ignore-revs-file@").kind(FileEffect::Reads),
    p("git grep", "-O --open-files-in-pager --textconv --ext-grep").value("-e -A -B -C -m -f --max-depth").kind(FileEffect::Reads),
    p("git format-patch", "-o@ --output-directory@ --ext-diff --textconv --output --signature-file"),
    p("git clone", "-c --config -u --upload-pack --template --separate-git-dir --reference --reference-if-able --bundle-uri").value("-b --branch -o --origin --depth -j --jobs --filter --shallow-since").extra_check(special::clone),
    p("git send-email|git imap-send|git request-pull", "*").fine("--dry-run --help"),
    p("git svn|git p4", "--authors-prog --config-dir --template -A --authors-file --git-dir").kind(FileEffect::Tool),
    p("git fetch|git pull|git ls-remote|git fetch-pack|git remote", "--upload-pack --exec --server-option -o --strategy -s -e --edit -X --gpg-sign -S --verify-signatures").value("--depth -j --refmap --negotiation-tip"),
    // `git send-pack` sends commits like `git push`, but a rule that denies `git push` does not match
    // it.
    p("git send-pack|git http-push|git merge-index|git remote-ext|git remote-fd", "*").fine("--help"),
    p("git repack|git multi-pack-index", "--filter-to --expire-to --object-dir"),
    p("git push", "--receive-pack --exec --signed -o --push-option"),
    p("git archive", "-o --output --exec --remote --add-file --prefix@").value("--format"),
    p("git commit", "-S --gpg-sign -e --edit -t --template --interactive -p --patch -F@ --file@ -c --reedit-message").value("-m --message -C --author --date --cleanup --trailer --fixup --squash"),
    p("git merge|git cherry-pick|git revert", "--verify-signatures -S --gpg-sign -s --strategy -e --edit -i --interactive -X --strategy-option -F@ --file@").value("-m --mainline"),
    p("git rebase", "-x --exec -i --interactive -S --gpg-sign -s --strategy --edit-todo -X").value("--onto"),
    p("git tag", "-s --sign -u --local-user -v --verify -e --edit -F@ --file@").value("-m --sort --format"),
    p("git branch", "--edit-description").value("-u --set-upstream-to --sort --format"),
    p("git difftool|git mergetool", "-x --extcmd -t --tool -g --gui").kind(FileEffect::Tool),
    p("git bisect", "run visualize view"),
    p("git submodule", "foreach --reference --config"),
    p("git config", "-e --edit -f --file --blob edit").extra_check(special::git_config),
    p("git worktree", "@"),
    p("git init", "--template --separate-git-dir @").value("-b --initial-branch"),
    p("git apply", "--unsafe-paths --directory@ --build-fake-ancestor@"),
    p("git bugreport|git diagnose", "-o@ --output-directory@ -s --suffix"),
    p("git am", "--directory@ -i --interactive -S --gpg-sign -e --edit"),
    p("git verify-commit|git verify-tag", "*"),
    p("git help", "-w --web -i --info -m --man"),
    p("git notes", "edit -F@ -e"),
    // Low-level commands that write the named files.
    p("git merge-file|git checkout-index|git read-tree|git index-pack|git pack-objects|git unpack-objects", "-o@ --index-output@ --prefix@ --object-id").kind(FileEffect::Writes),
    p("git interpret-trailers", "--in-place"),
    p("git fast-export|git fast-import", "--export-marks --import-marks --export-marks-if-exists --import-marks-if-exists --allow-unsafe-features"),
    p("git filter-branch|git filter-repo|git daemon|git instaweb|git credential|git credential-store|git credential-cache|git maintenance|git gui|git citool|git cvsserver|git shell|git hook|git for-each-repo|git subtree", "*").fine("--help run --auto --quiet --dry-run").kind(FileEffect::Tool),
    p("git commit-tree", "-S --gpg-sign -F@"),
    p("git replace", "-e --edit --convert-graft-file"),
    p("git bundle", "@"),
    p("git var", ""),
    p("git lfs", "install uninstall env ext track update merge-driver"),
    p("git add|git status", "-e --edit -i --interactive --pathspec-from-file@").kind(FileEffect::Reads),
    p("git update-index|git checkout|git restore|git switch|git reset|git clean|git rm|git mv", "-e --edit -i --interactive --pathspec-from-file@").fine("--exclude").value("-b -B -c -C -e -s --source --conflict"),
    // Other version control: `--config` can set any hook or alias.
    p("hg bisect|chg bisect", "-c --command"),
    p("hg|chg|sl|jj", "util --config --config-toml --config-file -R@ --repository@ --cwd@ --debugger --profile --pager --tool --ssh --remotecmd -e --encoding --editor --hidden-config -o --output extdiff serve --template-file"),
    p("svn|svnadmin|svnlook", "--config-option --config-dir --editor-cmd --diff-cmd --diff3-cmd --merge-cmd --password --targets -F --file --with-revprop --accept @"),
    p("cvs|bzr|fossil|darcs", "-d -e -z --rsh --Development -C --config --chdir --ui --extcmd *").fine("status diff log --version"),
    p("tig|lazygit|gitui|gitk|gitg", "**").fine("--version --help"),
    p("gh|glab|hub", "cs --env-file delete alias extension auth secret ssh-key gpg-key codespace config browse gist snippet -w --web -F --body-file --field --raw-field --input --editor -e --hostname").extra_check(special::gh).fine("--output").value("-R --repo -t --title -b --body -l --label -q --jq --json -L --limit -s --state -S --search"),
    p("gh api|glab api|hub api", "-X --method -f --raw-field -F --field --input -H --header -p").value("-q --jq -t --template"),
    p("gh run|gh release", "-D@ --dir@ -O --output upload create -A --archive -n --notes-file").kind(FileEffect::Tool),
    p("repo", "init forall --repo-url -u"),
];

/// Build tools.
const BUILD: &[Program] = &[
    p("make|gmake|bmake|mingw32-make", "-f --file --makefile -I --include-dir --eval -E -C@ --directory@ -W@").value("-o").fine("--what-if --new-file").extra_check(special::make),
    p("ninja|samu", "-f -C@ -t").value("-j -k -l -d -w"),
    p("cmake", "-P -C -E --toolchain --build@ --install --open -S@ -B@ --graphviz --trace-redirect --profiling-output --preset --find-package --debugger --debugger-pipe --project-file --workflow --system-information --help-full @").extra_check(special::cmake).value("-G -A -T -D --target --config -j").fine("--config"),
    p("ctest", "-S --script -SP --build-and-test --test-command --build-generator --build-makeprogram -O --output-log -T -M -D --overwrite --submit-index --resource-spec-file --output-junit -A --add-notes --extra-submit --test-dir@ -SR").value("-R -E -L -LE -C").fine("--output-on-failure --test-output-size-passed --test-output-size-failed"),
    p("meson", "--cross-file --native-file install -C@ --wrap-mode introspect runpython --internal dist devenv wrap --gdb --gdb-path --wrapper -Dc_args -Dcpp_args -Dc_link_args -Dcpp_link_args -Dpkg_config_path @").value("--buildtype").fine("setup compile test configure"),
    p("bazel|bazelisk|buck|buck2|pants|please", "--bazelrc --run_under --override_repository --override_module --workspace_status_command --script_path --output_base --output_user_root --install_base --host_jvm_args --server_javabase --shell_executable --action_env --test_env --repo_env --extra_toolchains --crosstool_top --host_crosstool_top --strategy --spawn_strategy --define run --config-file --pantsrc-files --config-root --isolation_dir --config --registry --embed_label").value("-c -j").fine("--test_output --config --output_filter"),
    p("just|task|go-task|mask", "-f --justfile -d@ --working-directory@ --shell --shell-arg --command -c --dotenv-path --dotenv-filename -t --taskfile --dir@ -g --global-justfile --evaluate-command -e --edit --chooser --choose --set --global --maskfile --init --tempdir --dump-format").extra_check(special::just),
    p("scons|waf|tup|rake|ant|jam|b2", "-f --file --sconstruct --makefile -C@ --directory@ -D -e --execute -E --execute-continue -p --execute-print -r --require -R --rakelibdir --libdir -I -N --system -g -buildfile -lib -logger -listener -propertyfile -inputhandler --site-dir --debug-command --top --out --rakefile -main").extra_check(special::scons),
    p("gradle|gradlew", "-b --build-file -c --settings-file -I --init-script -p@ --project-dir@ --include-build -g --gradle-user-home --project-cache-dir@ --system-prop -Dorg.gradle.java.home -Dorg.gradle.jvmargs publish -M --export-keys").fine("--configuration --configuration-cache --no-configuration-cache").extra_check(special::java_properties),
    p("mvn|mvnw", "-f@ --file@ -s --settings -gs --global-settings -t --toolchains -gt --global-toolchains -l --log-file deploy deploy:deploy deploy:deploy-file install:install-file dependency:get archetype:generate archetype:create exec:java exec:exec -emp -ep --encrypt-password -b --builder -llr").extra_check(special::java_properties).value("-pl -P -T -rf -D").fine("-ntp -am -amd"),
    p("sbt|mill|lein|boot|ammonite|amm", "-D --sbt-jar --sbt-dir --sbt-boot --java-home -J -mem --script --addons -e --with-config update-in exec -i --import --predef").extra_check(special::sbt),
    p("xcodebuild|swift|swiftc", "-project@ -workspace@ -derivedDataPath@ -xcconfig -exportArchive -C --package-path@ --scratch-path@ --build-path@ -Xswiftc -Xcc -Xlinker -Xcxx run -toolchain -e -interpret -repl repl -o@ -load-plugin-executable -load-plugin-library -plugin-path --toolset --sdk --swift-sdk -tools-directory -frontend --disable-sandbox plugin").extra_check(special::operands_are_code),
    p("autoconf|automake|autoreconf|aclocal|autoheader|bison|flex", "-I -B -S -o@ --output@ --include --prepend-include --skeleton --skel -l --language -g@ --graph@ --html@ --defines@"),
    p("gcc|emcc|em++|icc|icx|icpx|nvcc|hipcc|musl-gcc|g++|cc|c++|clang|clang++|tcc|gfortran|ld|lld|gold|mold|as|nasm|yasm|cpp", "-wrapper -B -specs --specs -fplugin -fpass-plugin -fuse-ld -Xclang -Xlinker -Xassembler -Xpreprocessor -load --config -o@ -T --sysroot@ -plugin --plugin -fprofile-use --ld-path -ccc-gcc-name -run -dynamic-linker --dynamic-linker -run --gcc-toolchain -fmodule-mapper -fbuild-session-file -no-canonical-prefixes -c@ -iplugindir -ccbin --compiler-bindir -dumpdir@ -dumpbase@ -MF@ -MJ@ -ccc-install-dir -serialize-diagnostics@ -Map@ --Map@ -fprofile-dir@ -fcallgraph-info@ -aux-info@ -@").fine("-c").extra_check(special::compiler),
    p("objdump|nm|readelf|size|addr2line|c++filt|objcopy|strip|gprof|gcov", "--plugin -o@ --dsym --debuginfod --dwarf-output").kind(FileEffect::Tool),
    // It runs the inspected program.
    p("ldd", "@").kind(FileEffect::Reads).extra_check(special::ldd),
    p("protoc|buf|flatc|thrift|swagger-codegen|openapi-generator", "--plugin --encode_raw --descriptor_set_out --dependency_out --config --template -t -o@ -I@ --proto_path@ --gen --out@ --path").extra_check(special::protoc),
    p("clang-format", "-i --i -style -assume-filename@ --style").fine("-style=file --style=file").kind(FileEffect::Reads),
    p("clang-tidy|cppcheck|include-what-you-use|infer|scan-build", "--load -load --fix -fix --fix-errors -fix-errors --config --config-file --export-fixes -p@ --checks-file --vfsoverlay --extra-arg --extra-arg-before --addon --addon-python --rule-file --library --suppressions-list --output-file --clang-tidy --plist-output --cppcheck-build-dir --project@ --use-analyzer -o -plugin"),
    p("shellcheck", "--rcfile").value("-e -i -s -f -S").kind(FileEffect::Reads),
    p("shfmt", "-w --write -ap --apply-ignore").value("-i -ln").kind(FileEffect::Reads),
    p("hadolint|yamllint|markdownlint|markdownlint-cli2|actionlint|vale|codespell|typos|cspell|commitlint|semgrep|trivy|gitleaks|checkov|tflint|golangci-lint|staticcheck|errcheck|revive", "-c --config --config-file --config-data --fix -f --write-changes -w --write -r --rules --plugin --plugin-dir -shellcheck -pyflakes --custom-rules -o --output --report-path --rulePaths --configBasedir -e -x --extends --external-checks-dir --external-checks-git --baseline --ini --init-rule --require --parser-preset --interactive -i --out-format --sarif-output --json-output --path-prefix --source --dump --cache-dir --download-external-modules").kind(FileEffect::Tool),
    p("pre-commit|lefthook|husky|overcommit", "-c --config install uninstall init-templatedir try-repo autoupdate migrate-config add --install-hooks"),
    p("doxygen|sphinx-build|mkdocs|hugo|jekyll|zola|mdbook|eleventy", "-c --conf-dir -C -D -f --config-file --config -s@ --source@ -d@ --destination@ --plugins -w --layouts --dest-dir@ --themesDir -r --root@ -o@ --output-dir@ --site-dir@ -p --theme gh-deploy deploy serve server -g -x @ --contentDir@ --layoutDir@ --cacheDir@ --open").kind(FileEffect::Tool),
];

/// Rust.
const RUST: &[Program] = &[
    p("cargo", "--config --manifest-path@ -C@ --target-dir@ --out-dir@ --artifact-dir@ --lockfile-path@ -Z install uninstall binstall login logout owner yank publish --keep-temps --unstable-options --open").value("-p --package --features -F --bin --example --test --bench -j --jobs --target --profile --message-format --color --exclude --manifest-path --target-dir --config -C -Z").fine("--all-features --no-default-features").extra_check(special::cargo),
    // The other options of `cargo clippy --fix` have no effect without `--fix`.
    p("cargo clippy", "--fix"),
    p("cargo fix", "--broken-code --allow-dirty --allow-staged"),
    p("cargo install", "--path@ --git --root --registry --index --config"),
    p("cargo add", "--path@ --git --registry"),
    // It opens a browser.
    p("cargo doc", "--open"),
    p("cargo publish", "--registry --index --token --manifest-path"),
    p("cargo fmt", "").extra_check(special::cargo_fmt),
    p("cargo test|cargo t|cargo bench", "").extra_check(special::cargo_test),
    p("cargo new|cargo init|cargo vendor|cargo package", "@ --registry").value("--name --edition --vcs"),
    p("cargo flamegraph", "--root -c --cmd -o@ --output@ --post-process --open"),
    p("cargo miri|cargo nextest|cargo llvm-cov|cargo tarpaulin|cargo watch|cargo expand|cargo make|cargo audit|cargo deny|cargo insta|cargo bloat|cargo flamegraph|cargo criterion|cargo zigbuild|cargo xwin|cargo binstall", "--config --config-file --tool-config-file -x --exec -s --shell --makefile --extensions -o@ --output-path@ --output-dir@ --open --theme --post-process --cmd --avoid-cfg-tarpaulin --engine -c --root@ --db --manifest-path@ --archive-file").extra_check(special::cargo_watch),
    p("cargo rustc|cargo rustdoc", "").extra_check(special::rustc),
    p("rustc|rustdoc|clippy-driver", "--sysroot -Z -o@ --out-dir@ -L@ --extern@ --runtool --test-builder --theme --html-in-header --html-before-content --html-after-content --markdown-css --runtool-arg --test-runtool --test-runtool-arg --output@ --codegen-backend").extra_check(special::rustc).value("--crate-name --crate-type --edition --cfg --target --print -A -W -D -F --cap-lints"),
    p("rustfmt", "--config-path --config").value("--edition --emit --color").kind(FileEffect::Writes).extra_check(special::toolchain),
    p("cargo-fmt|cargo-clippy|cargo-miri|rust-analyzer", "--manifest-path --config-path --config").extra_check(special::toolchain),
    p("rustup", "default install update uninstall self override set toolchain component target doc man").fine("").extra_check(special::toolchain),
    p("rustup show|rustup which|rustup check", "").kind(FileEffect::Reads),
    p("wasm-pack|trunk|cross|maturin|dx|tauri", "--config -C@ -d@ --out-dir@ publish login serve upload --target-dir@ --manifest-path@ -m@ --interpreter -i"),
    p("diesel|sqlx|sea-orm-cli|sea", "--config-file --migration-dir@ --source@ setup --env-file --database-url"),
];

/// Interpreters: their arguments are the code.
const SCRIPTS: &[Program] = &[
    p("esno|esr|jiti|sucrase-node|vite-node|babel-watch|torchrun|accelerate|deepspeed|horovodrun|k6|artillery|godot|electron|unity|nushell|phantomjs|casperjs|cookiecutter|copier|plop|degit|yo|codemod|jscodeshift", "***").fine("--version --help version help"),
    p("python|pypy|ipython|bpython|jython|micropython", "***").fine("--version -V -VV --help -h"),
    p("node|nodejs|deno|ts-node|tsx|ts-node-esm|qjs|d8|zx|bunx|coffee|babel-node", "***").fine("--version -v --help -h"),
    p("erb|utop|csi|rhino|jsc|lli|wasmtime|wasmer|perl|ruby|irb|pry|php|lua|luajit|Rscript|R|julia|ghci|runghc|runhaskell|tclsh|wish|osascript|pwsh|powershell|groovy|groovysh|scala|kotlin|kotlinc|java|jshell|elixir|iex|erl|escript|swipl|racket|guile|sbcl|clisp|ocaml|crystal|nim|raku|rakudo|octave|matlab|sage|maxima|gp|gnuplot|gawk-script|janet|fennel|bb|clojure|clj|nu|xonsh|elvish|rlwrap|awk-script|jrunscript|cscript|wscript", "***").fine("--version -version -v -V --help -h -help"),
    p("sh|bash|dash|zsh|ksh|mksh|fish|ash|csh|tcsh|rbash", "***").fine("--version --help"),
    p("deno bench|deno fmt|deno lint|deno check|deno test|deno info|deno doc", "-c --config --import-map --allow-run --allow-all -A --allow-ffi --allow-env --allow-write --allow-net --preload --rules-plugin --fix --unstable-kv --cert --location").extra_check(special::deno),
    p("deno task", "-c --config --cwd@").extra_check(special::deno),
];

/// Node and its tools.
const NODE: &[Program] = &[
    p("sass|lessc|postcss|tailwindcss|svgo|stylus|pug|typedoc|jsdoc|mmdc|graphql-codegen|apollo|size-limit|knip|depcheck|madge|license-checker|ncu|npm-check-updates|lint-staged|release-it|semantic-release|standard-version|changeset|write-good|textlint|alex|json-server|live-server|source-map-explorer", "-c --config --config-file --configFile --configPath --config-path -u --use --plugin --plugins -p --puppeteerConfigFile -r --require --routes --middlewares --options --js -O --obj --parser -e --extends --ci publish -o@ --output@ -d@ --destination@ --dir@ --out@ -t --template --theme --packageFile@ --packageManager --rulesdir --rule --preset --loader --functions --import").kind(FileEffect::Tool),
    p("npm|pnpm|yarn|bun|cnpm", "--prefix@ -C@ --dir@ --cwd@ --userconfig --globalconfig --script-shell --node-options --scripts-prepend-node-path node -g --global --location publish login logout adduser token config set unpublish deprecate owner access hook profile edit explore init create link unlink exec x dlx -c --call --shell --git --viewer --editor --browser --cache@ --modules-folder@ --global-folder --rcfile -r --preload -e --eval -p --print --registry --pnpmfile --global-pnpmfile --config --store-dir@ --virtual-store-dir@ --hook-require --use-yarnrc --cafile --cert --key --yolo --tsconfig-override repl upgrade")
        .value("-w --workspace --filter -F --loglevel")
        .fine("--config.node --global-style --cert-check --init --git-tag-version --create-lockfile")
        .extra_check(special::npm),
    // They open a browser.
    p("npm docs|npm home|npm repo|npm bugs|npm issues|pnpm docs|pnpm repo", "**"),
    p("npm init|npm publish|npm link|yarn global|pnpm link|bun link|bun create|yarn create|pnpm create", "*").fine("--help"),
    p("yarn plugin", "*").fine("--help list runtime").read_only_verbs("list runtime"),
    p("npm config|yarn config|pnpm config", "*").fine("--help list get ls").read_only_verbs("list get ls"),
    p("tslint", "-c --config -r --rules-dir -o --out -p --project --fix -s --formatters-dir -t --format --test"),
    p("eslint|prettier|stylelint|biome|standard|xo|oxlint|dprint|rome", "-c --config --config-path --rulesdir --rule-dir --plugin --plugin-search-dir --parser --parser-options --resolve-plugins-relative-to -f --format --formatter --custom-formatter --custom-syntax --config-basedir --fix --fix-type -w --write --apply --apply-unsafe --unsafe -o --output-file --init --stdin-from --cache-file --cache-location@ --config-precedence --env-info --find-config-path --flag --vcs-root@ --tsconfig --inspect-config --mcp --suppress-all --suppress-rule --suppressions-location --prune-suppressions").value("--rule --env --global --stdin-filename --ext --max-warnings --ignore-path --ignore-pattern --loglevel --log-level").fine("--format=json --check --no-config --cache --stdin --stdin-filepath").kind(FileEffect::Reads),
    p("tsc|vue-tsc|swc|babel|esbuild|rollup|webpack|vite|parcel|turbopack|tsup|ncc|rspack|metro|snowpack", "-p@ --project@ -b@ --build@ --outDir@ --outFile@ --rootDir@ --declarationDir@ --generateTrace@ --generateCpuProfile --tsBuildInfoFile@ --plugins -c --config --config-file --config-name --configPlugin --plugin --presets --extends --require -r --inject --banner --footer --outdir@ --outfile@ -o@ -d@ --out-dir@ --out-file@ --dir@ --file@ --servedir --serve --output-path@ --output-filename --entry --env --merge --root@ --external-helpers --no-sandbox --conditions --loader --onSuccess --on-success --init --open").fine("--conditions --output-public-path --showConfig --module --moduleResolution --moduleDetection --allowSyntheticDefaultImports --resolveJsonModule --esModuleInterop").extra_check(special::response).value("-t --target -m --module --format"),
    p("jest|vitest|mocha|ava|tap|jasmine|karma|cypress|playwright|wdio|qunit|uvu|storybook|cucumber", "-c --config --configFile --config-file --rootDir@ --roots@ --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --runner --testRunner --testEnvironment --environment --reporters --reporter --transform --resolver --preset --prettierPath --testSequencer --snapshotSerializers --testResultsProcessor --dependencyExtractor --modulePaths --moduleLoader --globals --projects --filter --snapshotResolver --outputFile --coverageDirectory@ --cacheDirectory@ -r --require --import --loader --ui -R --node-option --node-options --package --opts --file --extension --hook-require --helper --dir@ --root@ --api --open install codegen show-report --browser --pool --project@ --inspect-brk --report-dir@ --temp-dir@ -b --global-setup --tsconfig --out --output --output@ --compiler --world-parameters --format --moduleNameMapper --watchPlugins --haste --coverageReporters --coverageProvider --node-flags --reporter-option --reporter-options --typecheck.checker --snapshotEnvironment --diff --sequence.sequencer --api.host").value("--project -t --testNamePattern --testPathPattern --maxWorkers -g --grep --timeout --shard").fine("--coverage --verbose --run --watch --watchAll --showConfig --output-public-path --reporter=verbose --reporter=dot --reporter=default --browser=chromium --browser=firefox --browser=webkit --coverageReporters=text --coverageReporters=lcov --coverageReporters=json --coverageReporters=html --coverageReporters=text-summary --coverageProvider=v8 --coverageProvider=babel --pool=forks --pool=threads --env=node --env=jsdom --environment=node --environment=jsdom --modulePathIgnorePatterns").extra_check(special::tests),
    p("lerna|nx|turbo|rush|wireit|moon|npm-run-all|run-s|run-p|wsrun", "exec run-commands run-many --command --cwd@ --config --npm-client publish version --api --token --login login link --generate --graph --registry --plugins --runner --npm-path --yarn-path -c -l"),
    p("gulp|grunt|brunch|broccoli|ember|ng|next|nuxt|gatsby|expo|react-native|remix|astro|svelte-kit|sirv|serve|http-server|pm2|forever|nest|prisma|drizzle-kit|knex|sequelize|typeorm|firebase|vercel|netlify|wrangler|serverless|sls|cdk|amplify", "--gulpfile -f --cwd@ --require -r --preload --gruntfile -b --base@ --tasks --npm --config -c --project --builder deploy publish login logout --schema@ --env-file --token secret --output-path@ -o@ --plugin --knexfile --esm --migrations-path@ --dataSource -d --app -a --profile eject install --file --generator"),
];

/// Python and its tools, Ruby, PHP.
const PYTHON: &[Program] = &[
    p("pip|pipx|pip-compile|pip-sync|easy_install", "install uninstall config download wheel cache --python --log --user -i --index-url --extra-index-url -f --find-links -t --target --prefix --root --config-settings -C --global-option --install-option --build-option -e@ --editable@ -r@ --requirement@ -c@ --constraint@ --cert --client-cert --proxy --trusted-host --src@ -d@ --dest@ -w@ --wheel-dir@ --build --cache-dir@ --report --keyring-provider --use-feature -o --output-file inject upgrade ensurepath reinstall --pip-args --rcfile --config").fine("--no-cache-dir").value("--platform --abi --python-version --format"),
    p("pip install|pip download|pip wheel|uv pip|pip uninstall", "--python --log -i --index-url --extra-index-url -f --find-links -t --target --prefix --root --config-settings -C --global-option --install-option --build-option -e@ --editable@ -r@ --requirement@ -c@ --constraint@ --cert --client-cert --proxy --trusted-host --src@ --report --user --break-system-packages @").kind(FileEffect::Tool),
    p("uv|poetry|pipenv|pdm|hatch|rye|flit", "--directory@ --project@ -C@ -P@ --config-file --config-setting -p@ tool self config publish upload shell run --index --default-index --index-url --extra-index-url -i --find-links -f --install-dir --target --prefix@ init --build-backend --env-file --with-editable --repository --source cache --root@ --manifest-path@ global auth --tool-bin-dir plugin source python --skip-existing --sdist").fine("install --python -p").value("--extra --group --with --without").extra_check(special::uv),
    p("conda|mamba|micromamba|pixi|setuptools|twine|build", "--config-file --index-url -n --name -p --prefix install remove create update activate init config run shell global auth upload clean --repository -r --file -f -c --channel --override-channels -o --outdir@").kind(FileEffect::Tool),
    p("uv add|poetry add|pdm add|pipenv install", "@"),
    p("poetry env", "use @"),
    p("uv sync|uv lock|uv remove|uv tree|uv venv|uv export|uv build|poetry install|poetry update|poetry lock|poetry show|poetry check|poetry remove|pipenv sync|pdm install|hatch build", "").kind(FileEffect::Tool),
    p("pytest|py.test", "-c --config-file --rootdir@ -p --confcutdir --override-ini --basetemp --junitxml@ --junit-xml@ --pdbcls --log-file@ --cov-config --result-log --pastebin --debug --pyargs --import-mode-file --report-log@ --html@ --pdb --trace --rsyncdir --tx --dist-command --ds --dc --python-path --pythonpath --resultlog --trace-config --cov-report-file --env-file --envfile --benchmark-storage@ --benchmark-json@ --mypy-ini-file --mypy-config-file --driver-path --pylint-rcfile --flake8-config @").value("-k -m -n -o --maxfail --tb --durations --dist --import-mode --cov -W --color --timeout -r").fine("--cov --color --co --collect-only --cov-report --durations --disable-warnings --debugger --trace-config=no").extra_check(special::pytest),
    p("tox|nox|invoke|fab|behave|robot|locust|coverage|unittest|nosetests|nose2|green|hypothesis|mutmut|cosmic-ray", "-c --conf --config --config-file --workdir@ -x --override --rcfile -f --noxfile --extra-python --search-root --collection --plugin -P --pythonpath --listener --prerunmodifier --prerebotmodifier -d@ --outputdir@ -o --output --library --resource --variablefile -V --source --include --data-file@ -s@ -t@ --start-directory@ --top-level-directory@ --runner --tc-file --logging-config --env-dir --locustfile --headless --web-host --stage -D -i --junit-directory@ --runner-class --posargs --discover --develop --installpkg --root@ --hashseed-file --result-json@ exec e devenv --envdir@ --extra-pythons --force-python --force-pythons").value("-e -k -j -m").fine("-e").extra_check(special::coverage),
    p("timeit|cProfile|profile|pdb|trace|runpy|doctest|webbrowser|ensurepip|zipapp", "*").fine("-h --help -v"),
    p("json.tool|venv|compileall|zipfile|tarfile|http.server|py_compile|gzip", "-d --directory -b --bind").extra_check(special::module),
    p("black|ruff|mypy|flake8|pylint|isort|autopep8|yapf|autoflake|pyupgrade|pyright|pyre|pycodestyle|pydocstyle|vulture|djlint|sqlfluff|bandit|interrogate|pytype|basedpyright|refurb|blue|docformatter|ty", "--config --config-file --settings-path --settings-file --sp --settings -c --rcfile --init-hook --load-plugins --plugins --append-config --require-plugins --isolated-plugins --python-executable --custom-typeshed-dir --install-types --output-file -o --tee --fix --fix-only --unsafe-fixes --in-place -i --style --add-noqa --html-report --xml-report --txt-report --any-exprs-report --linecount-report --cobertura-xml-report --junit-xml --shadow-file --cache-dir@ --venv-path -v@ --venvpath --pythonpath --typeshedpath -p@ --project@ --code --import-graph --ignore-revs-file --enable-plugin --target-file --typeshed --bundled --aggressive-config --watch-file --extend-config --verbose-config --stdin-filename@ --workers-init --global-config --disable-plugin server lsp --enable-extensions --regenerate-todo --lineprecision-report --xslt-html-report --xslt-txt-report --linecoverage-report").extra_check(special::response).value("-l --line-length -t --target-version --select --ignore --max-line-length --extend-ignore --exclude -j").fine("--disable --enable --check --diff --quiet -q --fix-imports -v --verbose").kind(FileEffect::Tool),
    p("django-admin|manage.py|flask|uvicorn|gunicorn|celery|alembic|jupyter|ipython|streamlit|airflow|scrapy|ansible-galaxy|ansible-lint|mkvirtualenv|virtualenv|pyenv|uvx", "shell dbshell runscript runserver --settings --pythonpath -c --config --app -A --factory --app-dir@ --env-file --log-config -e --preload -k --worker-class --logger-class --paste --chdir@ install uninstall --template -x --execute --to --exec --pre-exec notebook lab console run nbconvert -p --python --extra-search-dir --app-data --creator --init-script fetch crawl parse runspider --spider"),
    p("prove", "-e --exec -I -M -P --source --formatter --harness --rc -A -a --archive -w -l --state --rules @").fine("--color --nocolor"),
    p("perldoc", "-d -o -M -n -w -D -T"),
    p("gem|bundle|bundler|rspec|rubocop|rails|rake-cli|brakeman|standardrb|jekyll-cli|cucumber-ruby|puma|guard|sorbet|srb|solargraph|steep", "install uninstall update push yank owner signin signout cert -r --require -I -O --options --default-path@ -o --out -c --config -a -A --autocorrect --auto-correct --autocorrect-all --fix -x console c runner r dbconsole db server s new generate g config --path --gemfile --standalone plugin init open add --config-file --format -f --format-options --plugin --force-exclusion-file --cache-root@ --drb -P --source -s --bindir -n -i --install-dir --with-opt --clear-sources --key --env-file viz gem app:template --fix-layout --regenerate-todo --auto-gen-config exec pristine --binstubs --trust-policy -C@ --output -w --write").value("-e --example -t --tag").fine("").kind(FileEffect::Tool),
    p("bundle install|bundle update|bundle check|bundle list|bundle show|bundle outdated", "--gemfile@ --path@ --standalone --binstubs --trust-policy"),
    p("composer|phpunit|phpstan|psalm|pest|php-cs-fixer|phpcs|phpcbf|artisan|drush|wp|rector|infection|deptrac|behat|codecept", "-d@ --working-dir@ global config exec run-script self-update selfupdate create-project init -c --configuration --config --bootstrap --prepend --printer --extension --include-path --log-junit@ --coverage-html@ --coverage-clover@ --testdox-html@ --testdox-text@ --log-teamcity --generate-configuration --migrate-configuration -a --autoload-file --rules --rule-tester --plugin --report-file --report --standard --runtime-set --config-set --config-delete --config-path fix process tinker db serve eval eval-file shell --exec --require --path --ssh --http --memory-limit-file --generate-baseline --error-format --initial-tests-php-options --test-framework-options --phpunit --ignore-platform-config -i --root --init --alter --coverage-php@ --coverage-text@ --coverage-xml@").extra_check(special::tests),
];

/// Go.
const GO: &[Program] = &[
    p("go", "-exec -toolexec -vettool -C@ -overlay -modfile -o@ -gccgoflags -compiler -pkgdir@ -fuzzcachedir -debug-actiongraph -debug-trace -cpuprofile@ -memprofile@ -blockprofile@ -mutexprofile@ -coverprofile@ -trace@ -outputdir@ -test.outputdir@ -c@ install generate tool bug telemetry -work@ -pgo@ -buildvcs-file -test.cpuprofile@ -test.memprofile@").value("-run -bench -count -timeout -tags -p -parallel -cpu -covermode -coverpkg -mod").extra_check(special::go),
    p("go env", "-w -u"),
    p("go get", "-insecure"),
    p("go install", "-exec -toolexec -o"),
    p("gofmt|goimports|gofumpt|gci|golines", "-w -write -cpuprofile -srcdir@").value("-r").kind(FileEffect::Reads),
    p("dlv|delve|ko|air|goreleaser|mockgen|wire|buf-go|gopls|gotestsum|ginkgo", "exec debug test attach core connect dap replay trace --init --wd@ --backend --headless --listen --api-version -c --build.cmd --build.bin --config -f --file publish resolve --raw-command --junitfile@ --jsonfile@ --post-run-command --watch -exec_only -destination@ -self_package release -exec -toolexec -vettool bootstrap --output-dir@ --junit-report@"),
];

/// Other languages.
const OTHER_CODE: &[Program] = &[
    p("keytool|jarsigner", "-J -providerclass -providerClass -providerpath -providerPath -providerarg -genkey -genkeypair -genseckey -gencert -importcert -import -importkeystore -importpass -delete -changealias -storepasswd -keypasswd -export -exportcert -certreq -file -conf -signedjar -keystore@ -addprovider").fine("-list -printcert -help -v -rfc"),
    p("javap|jps|jstack|jstat", "-J -cp@ -classpath@").kind(FileEffect::Reads),
    p("jcmd|jmap|jhsdb|jinfo", "*").fine("-h -help --help -l -histo"),
    p("forge|cast|anvil|hardhat|truffle|solc", "--ffi --allow-paths --config --config-path --root@ script create send run console exec deploy publish install --private-key --mnemonic --keystore --solc --use --compiler -o@ --output-dir@ --out@").kind(FileEffect::Tool),
    p("luarocks|pod|fastlane|ghcup|opam-install", "*").fine("--version --help list search show outdated lanes"),
    p("dbt|sqlfmt", "--profiles-dir@ --project-dir@ run-operation --macro --profile-file --target-path@ --log-path@"),
    p("gcovr|lcov|genhtml|geninfo", "-o@ --output@ --output-file@ --output-directory@ --config --config-file --gcov-executable --gcov-tool --rc -d@ --directory@ -r@ --root@ --css-file --html-prolog --html-epilog --branding --demangle-cpp-tool --version-script --criteria-script --annotate-script --select-script"),
    p("javac|scalac|groovyc|ecj", "-processor -processorpath --processor-path -J -d@ -s@ -h@ -Xplugin -cp@ -classpath@ -Xbootclasspath -toolsjar -bootclasspath --system --upgrade-module-path -Xscript -plugin --module-path --add-plugin").extra_check(special::compiler),
    p("dotnet|msbuild|nuget|mono|fsi|csi|csc", "run exec tool new publish nuget push fsi script -s --settings --test-adapter-path --logger -l --collect --diag@ -o@ --output@ --artifacts-path@ -p --property /p /property --additionalprobingpath --additional-deps --depsfile --runtimeconfig --roll-forward-to --runsettings -r@ --results-directory@ workload sdk --source --configfile --configuration-file dev-certs user-secrets watch --project@ build-server @ --analyzer -analyzer --interactive").extra_check(special::dotnet).value("-c --configuration -f --framework -v --verbosity --filter").fine("--configuration"),
    p("zig|odin|v|vlang|nimble|crystal-build|shards|dub|rdmd|dmd|ldc2|gnatmake|fpc|cobc", "run build-exe build-lib build-obj cc c++ ar --build-file --build-runner --global-cache-dir@ --zig-lib-dir --prefix@ -p@ --test-cmd --test-cmd-bin --test-runner -femit-bin -of@ --compiler --eval -e --config install init publish --single --root@ translate-c --libc --sysroot -extra-linker-flags -exec -out -file -custom-attribute --nim --cc -prod-linker --linker -L"),
    p("stack|cabal|ghc|hlint|ormolu|fourmolu|haddock", "exec run runghc runhaskell script eval repl ghci ghc -e -pgmF -pgmP -pgmL -pgmc -pgma -pgml -F -fplugin -package-db -package-env --with-ghc -w --with-gcc --stack-yaml --project-file --ghc-options --setup-info-yaml --docker --nix --work-dir@ --stack-root --config-file --store-dir install upload sdist new init hoogle -o@ --refactor --refactor-options --refactor-path -h --hint --report --mode --inplace -i -pgm -hide-all --exec --builddir@ --prog-path --with-compiler").fine(""),
    p("dune|opam|ocamlfind|ocamlopt|ocamlc|esy|rebar|mix|hex|gleam|rescript", "exec utop --root@ --workspace --config-file --prefix@ --build-dir@ install uninstall switch pin init remove reinstall -pp -ppx -ppopt -pp-opt -plugin -o@ run cmd eval -e --eval local archive.install escript.install shell -r --require hex.publish publish --no-mix-exs release --toolchain -use-runtime -cc promote ocaml-merlin top upgrade"),
    p("dart|flutter|pub", "run compile pub global --packages@ --enable-vm-service --observe install -o@ --output@ --dart-define-from-file --local-engine --local-engine-src-path config upgrade downgrade channel drive --driver --target@ -t@ attach screenshot symbolize create --use-application-binary emulators custom-devices publish --plugins --tool").extra_check(special::operands_are_code),
    p("kotlinc-jvm|ktlint|detekt|scalafmt|scalafix|google-java-format|checkstyle|pmd|spotbugs|jmh", "-F --format -R --ruleset --reporter -r --rules -c --config --config-resource -p --plugins --report -i --replace --inPlace --in-place --auto-correct -ac --classpath -cp --jvm-args -o --output --tool-classpath --auxclasspath --pluginList -jvmArgs --non-interactive --editorconfig --baseline --generateConfiguration --build-upon"),
    p("terraform|tofu|terragrunt|pulumi|packer|vagrant|cdktf", "-chdir@ --terragrunt-working-dir@ --cwd@ -C@ apply destroy console import login logout up down refresh taint untaint state force-unlock workspace ssh provision reload halt plugin install init --terragrunt-config --terragrunt-tfpath --tf-path -out -state -state-out -backup -backend-config -plugin-dir -from-module -var-file@ -generate-config-out --exec-agent --config-file --policy-pack --plugin-path build -on-error --terragrunt-download-dir box -lock-file run-all hclfmt-file mirror 0.12upgrade 0.13upgrade @").fine("-out=plan -lock").value("-target -var"),
    p("terraform test|tofu test", "**").fine("-help"),
    p("terraform init|tofu init", "-backend-config -plugin-dir -from-module -get-plugins -chdir"),
    p("terraform state|terraform workspace", "rm mv push pull replace-provider delete new"),
];

/// Databases.
const DATA: &[Program] = &[
    p("sqlite|sqlite3|litecli|duckdb|sqldiff", "-init -cmd -vfs -archive -A -zip -append -deserialize -unsigned -loadext --liteclirc -ascii-file -ui").value("-separator -nullvalue -newline -mmap -maxsize").kind(FileEffect::Writes).extra_check(special::sqlite),
    p("psql|pgcli|usql", "! -f --file -o --output -L --log-file -v --set --variable --pgclirc -d@ --jobs-file --filter -D -P --pset").value("-h -p -U -c --command --dbname --host --port --username -T").fine("--command --variable").extra_check(special::psql_client),
    p("pg_dump|pg_dumpall|pg_restore|createdb|dropdb|vacuumdb|pgbench|cockroach", "-f --file -o --output -L --log-file -v --set --variable --pgclirc -d@ --jobs-file --filter -D -P --pset").value("-h -p -U -c --command --dbname --host --port --username -t -n -N -T").fine("--command --variable").extra_check(special::psql),
    p("mysql|mariadb|mycli|mysqldump|mysqladmin|mysqlimport|mysqlsh|mysqlslap", "! --pager --tee --init-command --init-command-add --defaults-file --defaults-extra-file --defaults-group-suffix --login-path --plugin-dir --default-auth --local-infile --load-data-local-dir --socket -S --ssl-key --ssl-cert -r --result-file -T --tab --logger --myclirc --auto-vertical-file --py --js --pyc -f --file --server-public-key-path -p@ --system-command").value("-h -P -u -D --execute").fine("--execute --pager=cat").extra_check(special::mysql),
    p("redis-cli|valkey-cli|keydb-cli", "! --eval -x -X --pipe --rdb --functions-rdb -s --cacert --cert --key --ldb --ldb-sync-mode --hotkeys-file eval EVAL evalsha EVALSHA config CONFIG module MODULE debug DEBUG slaveof SLAVEOF replicaof REPLICAOF script SCRIPT function FUNCTION migrate MIGRATE save SAVE bgsave BGSAVE shutdown SHUTDOWN acl ACL fcall FCALL").value("-h -p -n -a --user -u").extra_check(special::redis),
    p("mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport|cqlsh|influx|clickhouse|clickhouse-client|snowsql|bq|trino|spark-shell|spark-submit|spark-sql|pyspark|hive|beeline|hdfs|hadoop", "**").fine("--version --help"),
    p("bcp|sqlcmd|osql|isql|sqlplus", "**").fine("--version -?"),
];

/// Containers and clouds.
const CLOUD: &[Program] = &[
    p("docker|podman|nerdctl|buildah|docker-compose|podman-compose", "-H --host -c --context --config --tlscacert --tlscert --tlskey cp create service stack push login logout save export import load plugin context swarm commit trust attach -f@ --file@ --env-file --project-directory@ -v --volume --mount --privileged --pid --device --cap-add --security-opt -o --output --secret --ssh --iidfile --metadata-file --cidfile --entrypoint --url --root --runroot --runtime --conmon --hooks-dir --module --storage-driver --build-context --builder builder buildx machine unshare mount system secret config volume checkpoint --sig-proxy --detach-keys --cgroup-parent --add-host --network --userns --ipc --uts --authfile --creds --cert-dir --signature-policy --profile-file --decryption-key")
        .value("--profile -t --tag --build-arg --target --platform -n --tail --filter --format --since --name -p --project-name -l --label")
        .fine("--format --build --volumes")
        .extra_check(special::docker),
    // The build file decides what runs.
    p("docker build|podman build|nerdctl build|buildah build|buildah bud", "-f --file --env-file -o --output --secret --ssh --iidfile --metadata-file --build-context --builder --add-host --allow --security-opt --network --cache-to --cache-from --config --volume -v --privileged").value("-t --tag --build-arg --target --platform"),
    p("docker compose|docker-compose up|docker-compose build|docker-compose ps|docker-compose logs|docker-compose down", "-f@ --file@ --env-file --project-directory@ -o --output --secret --ssh --iidfile --metadata-file --build-context --builder --add-host --allow --security-opt --network --cache-to --cache-from --config run exec cp --volume --entrypoint --privileged").fine("-v --build --volumes").value("-t --tag --build-arg --target --platform -p --project-name --profile"),
    p("docker ps|docker images|docker logs|docker inspect|docker stats|docker top|docker port|docker version|docker info|docker history|docker diff|podman ps|podman images|podman logs|docker-compose ps", "").kind(FileEffect::Reads),
    p("kubectl|oc|k3s|microk8s|minikube|kind|k9s|kubens|kubectx|stern|kustomize|skaffold|tilt|argocd|flux|istioctl|linkerd|crictl|ctr", "--kubeconfig --kuberc -s --server --token --as --cluster --user --certificate-authority --client-key --client-certificate --insecure-skip-tls-verify --raw cp attach port-forward proxy edit config apply create delete replace patch scale rollout set label annotate drain cordon uncordon taint certificate plugin exec run debug expose autoscale auth --profile-output -k@ --kustomize@ -f@ --filename@ --template --plugin-dir --enable-exec --enable-alpha-plugins --enable-helm --helm-command --exec start stop ssh mount tunnel load --password --cache-dir@ --record --subresource --config -c --plugins-dir")
        .value("-n --namespace -l --selector -o --output --context -c --container --tail --since")
        .fine("-o --output -c --container --client --output-watch-events").extra_check(special::kubectl),
    p("kubectl apply|kubectl create|kubectl delete|kubectl rollout|kubectl scale|kubectl label|kubectl annotate|kubectl patch|kubectl set|kubectl expose|kubectl edit|kubectl config|kubectl auth|kubectl port-forward|kubectl replace", "--kubeconfig --kuberc --server --token --raw -k@ --kustomize@ -f@ --filename@ --patch-file@ --edit --from-file --from-env-file --template --exec-command set-context set-cluster set-credentials use-context unset delete-context").kind(FileEffect::Tool),
    p("kubectl kustomize|kustomize build", "-o@ --output@"),
    p("helm|helmfile", "--post-renderer --post-renderer-args plugin --kubeconfig --kube-apiserver --kube-token --registry-config --repository-config --repository-cache -f --values --set-file install upgrade uninstall rollback push registry repo --key-file --cert-file --ca-file --output-dir -d@ --destination@ --helm-binary --file --environment --args --keyring --plugins").fine("--set --set-string --set-json --plugin-dir=").extra_check(special::helm),
    p("aws|gcloud|az|doctl|heroku|flyctl|fly|linode-cli|oci|ibmcloud|hcloud|scw|s3|cf|eb|sam|copilot", "--cli-input-json --cli-input-yaml --endpoint-url --profile configure --ca-bundle --config --flags-file --impersonate-service-account --credential-file-override --configuration login logout auth cp mv sync rm rb put-object s3api ssh ssm scp rsync deploy create delete update run invoke start-session execute-command --template-file --parameter-overrides --body --zip-file --payload --user-data secretsmanager get-secret-value iam stop start restart reset add-iam-policy-binding remove-iam-policy-binding get-credentials config-ssh extension plugins alias component components set submit call upload rest update-kubeconfig --access-token-file").fine("--output --format").extra_check(special::cloud),
    p("ansible-vault|ansible-inventory|ansible-doc|salt|salt-call|puppet|chef|chef-client|knife|cfengine|inspec|molecule", "**").fine("--version --help"),
    p("vault|pass|bw|gopass|keyring|secret-tool|security|op|lpass|1password", "**").fine("--version status"),
];

/// The system.
const SYSTEM: &[Program] = &[
    p("sar|iostat|mpstat|pidstat|sadf", "-o").kind(FileEffect::Reads),
    p("renice|ipcrm|stty|setterm|chvt", "*").fine("-a --all size --help --version"),
    p("apt|apt-get|aptitude|yum|dnf|microdnf|zypper|apk|brew|snap|flatpak|choco|winget|scoop", "*").fine("list search show info policy depends rdepends --version --help --installed --upgradable -h").read_only_verbs("list search show info policy depends rdepends"),
    p("cpan|apt-key|apt-mark|apt-add-repository|add-apt-repository|pacman|yay|paru|emerge|xbps-install|opkg|port|nix-env|nix-channel|nix-build|nixos-rebuild|home-manager|guix|asdf|mise|sdk|nvm|fnm|volta|rbenv|nodenv|goenv|tfenv", "*").fine("list search show info policy depends rdepends --version --help --installed --upgradable -h config-dump"),
    p("apt-cache|dpkg-query", "-c --config-file -o --option --admindir").kind(FileEffect::Reads),
    p("dpkg|dpkg-deb|rpm", "*").fine("-l --list -L --listfiles -s --status -S --search -I --info -c --contents -q -qa -qi -ql -qf -qR --version --help --print-architecture").read_only_verbs("-l --list -L --listfiles -s --status -S --search -c --contents -q -qa -qi -ql -qf -qR"),
    p("rpmbuild|alien|makepkg|debuild", "*").fine("--version --help"),
    p("date|gdate", "-s --set").value("-d --date -f -r").fine("-Ins -Is -Iseconds -Iminutes -Ihours").kind(FileEffect::Reads).extra_check(special::date),
    p("hostname|domainname|dnsdomainname", "-F --file -b --boot").kind(FileEffect::Reads).extra_check(special::hostname),
    p("ip|ifconfig", "*").fine("a addr link -a show -s -d -V --version -h --help -br -c -4 -6 route -o -j -json neigh rule ls list"),
    p("mount|umount|swapon|swapoff", "*").fine("-l -V --version -h --help -s --show"),
    p("route|iptables|ip6tables|nft|ufw|firewall-cmd|tc|bridge|ethtool|nmcli|iw|iwconfig|brctl|wg|wg-quick|resolvectl|arptables|ebtables|ipset|sysctl|losetup|hdparm|modprobe|insmod|rmmod|depmod|fsck|mkfs|fdisk|parted|sgdisk|cfdisk|mkswap|cryptsetup|lvcreate|vgcreate|pvcreate|mdadm|zfs|zpool|btrfs|tune2fs|resize2fs|debugfs|quota|setquota|blkdiscard|wipefs|eject|udevadm|kexec|setcap|getcap|restorecon|chcon|semanage|setenforce|auditctl", "*").fine("show -a -V --version -h --help -4 -6 -n -l --list status"),
    p("systemctl|loginctl|hostnamectl|timedatectl|localectl|machinectl|networkctl|coredumpctl|busctl|journalctl|service|rc-service|rc-update|chkconfig|initctl|launchctl|supervisorctl|sv|s6-svc|svc|runit|systemd-analyze", "start stop restart reload enable disable mask unmask kill edit set-property daemon-reload daemon-reexec isolate reboot poweroff halt suspend hibernate link revert preset set-default set-environment unset-environment import-environment emergency rescue kexec switch-root cancel clean freeze thaw bind mount-image add-wants add-requires hostname set-hostname set-time set-timezone set-ntp set-locale set-keymap lock-session terminate-session debug gdb call set-log-level --vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --setup-keys --file --directory -D --root --image --relinquish-var --update-catalog -H --host -M --machine bootstrap load unload kickstart submit add update shell reread remove default try-restart reload-or-restart force-reload log-level set-user-linger enable-linger condrestart --cursor-file once down up exit verify-script cat-config").value("-u --unit -n --lines -p --property -t --since --until -o --output").fine("-o --output").extra_check(special::systemctl),
    p("hwclock|rfkill|gsettings|dconf", "*").fine("-r --show --version --help list get read list-schemas list-keys"),
    p("javadoc", "-J -doclet -docletpath -taglet -tagletpath @"),
    p("jshint", "--reporter --config -c --extract"),
    p("crontab", "**").fine("-l"),
    p("at|atq|atrm|batch|anacron|fcrontab", "**").fine("-l -V"),
    p("useradd|userdel|usermod|groupadd|groupdel|groupmod|adduser|deluser|addgroup|passwd|chpasswd|gpasswd|chsh|chfn|chage|newgrp|visudo|vipw|su|sudoedit|pkexec|login|ldconfig|update-alternatives|alternatives|update-rc.d|update-grub|grub-install|update-initramfs|dpkg-reconfigure|debconf-set-selections|locale-gen|reboot|shutdown|halt|poweroff|init|telinit|mknod|makedev|dmsetup|ldapmodify|kadmin|defaults|scutil|spctl|csrutil|dscl|tccutil|nvram|pmset|diskutil|hdiutil|installer|softwareupdate|xattr|regedit|reg|setx|sc|net|netsh|schtasks|bcdedit|wmic", "**"),
    p("dmesg", "-C --clear -c --read-clear -D --console-off -E -n --console-level -F@ --file@").kind(FileEffect::Reads),
    p("kill|pkill|killall|xkill|skill|fuser", "-1 -k --kill").kind(FileEffect::Tool).extra_check(special::kill),
    p("inotifywait|inotifywatch", "-o --outfile -d --daemon --fromfile"),
    p("nix", "-f --file --expr -E --option --impure -I --include --builders --override-input --override-flake --inputs-from @ run shell develop repl profile bundle copy store daemon edit upgrade-nix registry").value("-L").extra_check(special::deno),
    p("top|htop|atop|btop|iotop|glances|nvidia-smi|sensors|powertop|watch", "--config --export -w@ -C --stdout-file --output-file --enable-plugin -pm -r -f@ --filename@").kind(FileEffect::Tool),
    p("logger|wall|write|mesg|notify-send|say|beep|xdg-open|open|start|explorer|sensible-browser|xdg-mime|xdg-settings|gio|kde-open|gnome-open|wslview|cygstart|see|run-mailcap|x-www-browser|firefox|chromium|google-chrome|lynx|w3m|links|elinks|xclip|xsel|pbcopy|pbpaste|wl-copy|xdotool|ydotool|wmctrl|xterm|gnome-terminal|konsole|alacritty|kitty|wezterm|urxvt|dbus-send|gdbus|qdbus", "**").fine("--version --help"),
    p("history|fc|hash|bind|enable|shopt|complete|compgen|compopt|dirs|caller|suspend|logout|disown|fg|bg|jobs|times|ulimit|umask|exit", ""),
    // The name of a variable is evaluated.
    p("wait", "-p").kind(FileEffect::Reads),
    p("agentctl|agentd", "--socket --config -H --host rpc -a --approval-mode --yolo attach demo dial-stdio host acp").value("--socket --config -H --host").fine("--output"),
    p("cypher-shell|neo4j-admin|rabbitmqctl|kafka-topics|kafka-configs|consul|nomad|etcdctl|zookeeper-shell|nginx|apachectl|httpd|caddy|traefik|haproxy|certbot|mkcert|step|cfssl|squid|postfix|postconf|named|rndc|slapd|smbclient|smbpasswd|mosquitto_pub|mosquitto_sub|grpcurl|websocat|ngrok|cloudflared|tailscale|zerotier-cli|openvpn", "**").fine("--version -v -V version -t --help status"),
];
