//! From words to commands: reserved words, heads of compound commands, redirections, ends of commands.

use super::{Block, Head, HereDocument, Lexer, ListKind, OpenRedirection, Operator};
use crate::shell::lex::syntax::{Connector, RedirKind, Redirection, SimpleCommand, UnsupportedSyntax};
use crate::shell::lex::word::{Marks, Word};

impl Lexer<'_> {
    /// Ends the current word, if there is one: it belongs to a redirection, to the head of a compound command, or to
    /// a command.
    pub(super) fn end_word(&mut self) {
        let end = self.position;
        let list = self.list();
        let Some(draft) = list.draft.take() else { return };
        let mut word = draft.finish(end);
        // `$!` is a number or empty. The word is not empty only if it contains more than `$!`.
        if word.marks.has_any(Marks::NUMBER) && word.text.contains("$!") && word.text != "$!" {
            self.note(UnsupportedSyntax::Parameter);
            word.marks.add(Marks::EXPANDS);
        }
        let list = self.list();
        if let Some(redir) = list.redir.take() {
            self.end_redirection(redir, word);
            return;
        }
        match list.kind {
            ListKind::Array => return,
            ListKind::Conditional => {
                if word.is_bare() && word.text == "]]" {
                    self.close_list();
                }
                return;
            }
            _ => {}
        }
        if self.takes_head_word(&word) {
            return;
        }
        if self.list().is_fresh() && word.is_bare() && self.takes_reserved_word(&word) {
            return;
        }
        let list = self.list();
        if list.is_after_compound && !list.needs_command && !list.is_started {
            self.note(UnsupportedSyntax::Syntax);
        }
        let list = self.list();
        list.is_after_compound = false;
        if !list.is_started {
            list.is_started = true;
            list.command.start = word.start;
        }
        list.command.end = word.end;
        if list.command.words.is_empty() && word.is_assignment() {
            list.command.assigns.push(word);
        } else {
            list.command.words.push(word);
        }
    }

    /// Adds a redirection to the current command, now that its target is known.
    pub(super) fn end_redirection(&mut self, redir: OpenRedirection, target: Word) {
        let mut kind = redir.kind;
        if kind == RedirKind::Here {
            let start = self.list().redir_start;
            self.note_ignorable(start, target.end);
            let unsure = [Marks::EXPANDS, Marks::NUMBER, Marks::DOLLAR_QUOTE];
            if unsure.iter().any(|mark| target.marks.has_any(*mark)) || target.text.contains('\n') {
                // bash treats such an end mark differently.
                self.note(UnsupportedSyntax::Unsure);
            }
            let here = HereDocument {
                end: target.text.clone(),
                strips_tabs: redir.strips_tabs,
                quoted: target.marks.has_any(Marks::QUOTED),
            };
            if let Some(row) = self.pending_heres.last_mut() {
                row.push(here);
            }
        }
        let is_descriptor = target.is_bare()
            && (target.text == "-"
                || target.text.trim_end_matches('-').bytes().all(|c| c.is_ascii_digit())
                    && target.text.bytes().filter(|c| *c == b'-').count() <= 1);
        if kind == RedirKind::Duplicate && !is_descriptor {
            kind = if redir.is_output { RedirKind::Output } else { RedirKind::Both };
        }
        let end = target.end;
        let list = self.list();
        list.command.end = end;
        list.command.redirs.push(Redirection { kind, target, named: redir.named });
    }

    /// Handles the words of a compound command's head. Returns whether the word was one.
    pub(super) fn takes_head_word(&mut self, word: &Word) -> bool {
        let bare = word.is_bare().then_some(word.text.as_str());
        let list = self.list();
        match list.head {
            Head::None => false,
            Head::LoopName => {
                list.head = Head::LoopWords;
                self.name_loop(word);
                true
            }
            Head::LoopWords => {
                if bare == Some("do") {
                    list.head = Head::None;
                    list.needs_command = true;
                }
                self.add_loop_word(word);
                true
            }
            Head::CaseWord => {
                if bare == Some("in") {
                    list.head = Head::CasePattern;
                }
                true
            }
            Head::CasePattern => {
                if bare == Some("esac") {
                    list.head = Head::None;
                    self.close_block(Block::Case);
                }
                true
            }
            Head::FunctionName => {
                list.head = Head::None;
                list.needs_command = true;
                // The brackets are optional.
                let mut position = self.position;
                while let Some((b' ' | b'\t', after)) = self.peek_from(position) {
                    position = after;
                }
                if let Some((b'(', inner)) = self.peek_from(position) {
                    let mut position = inner;
                    while let Some((b' ' | b'\t', after)) = self.peek_from(position) {
                        position = after;
                    }
                    if let Some((b')', after)) = self.peek_from(position) {
                        self.position = after;
                    }
                }
                true
            }
            Head::Time => {
                if matches!(bare, Some("-p" | "--")) {
                    self.note_ignorable(word.start, word.end);
                    return true;
                }
                list.head = Head::None;
                false
            }
            Head::Coproc => {
                list.head = Head::None;
                // `coproc NAME {`: the word is a name only before a compound command.
                let mut position = self.position;
                while let Some((b' ' | b'\t', after)) = self.peek_from(position) {
                    position = after;
                }
                matches!(self.peek_from(position), Some((b'{' | b'(', _)))
                    && bare.is_some_and(|name| name != "{")
            }
        }
    }

    /// Handles a reserved word at the start of a command. Returns whether it was one.
    pub(super) fn takes_reserved_word(&mut self, word: &Word) -> bool {
        let text = word.text.as_str();
        match text {
            "{" => self.open_block(Block::Brace),
            "}" => self.close_block(Block::Brace),
            "!" => {
                if self.list().is_after_pipe {
                    self.note(UnsupportedSyntax::Syntax);
                }
                self.note_ignorable(word.start, word.end);
                let list = self.list();
                list.needs_command = true;
                list.joined = true;
            }
            "time" => {
                let start = word.start;
                self.note_ignorable(start, word.end);
                let list = self.list();
                list.head = Head::Time;
                list.command.timed.get_or_insert(start);
                list.is_after_compound = false;
                list.needs_command = false;
                return true;
            }
            "if" => self.note_control_flow(Some(Block::If)),
            "while" | "until" => self.note_control_flow(Some(Block::Loop)),
            "do" if self.innermost_loop().is_some() => self.need_command(),
            "then" | "elif" | "else" | "do" => self.note_control_flow(None),
            "fi" => self.close_block(Block::If),
            "done" => {
                let block = self.innermost_loop().map_or(Block::Loop, Block::For);
                self.close_block(block);
            }
            "esac" => self.close_block(Block::Case),
            "for" => self.open_loop(),
            "select" => {
                self.note_control_flow(Some(Block::Loop));
                self.list().head = Head::LoopName;
            }
            "case" => {
                self.note_control_flow(Some(Block::Case));
                self.list().head = Head::CaseWord;
            }
            "function" => {
                self.note(UnsupportedSyntax::Function);
                self.list().head = Head::FunctionName;
            }
            "coproc" => {
                self.note(UnsupportedSyntax::Coproc);
                self.list().head = Head::Coproc;
            }
            "[[" => {
                self.note(UnsupportedSyntax::Conditional);
                self.list().needs_command = false;
                self.open_list(ListKind::Conditional);
            }
            _ => return false,
        }
        true
    }

    /// Notes control flow, which is not understood, and opens its block if it begins one.
    pub(super) fn note_control_flow(&mut self, block: Option<Block>) {
        self.note(UnsupportedSyntax::ControlFlow);
        if let Some(block) = block {
            self.open_block(block);
        }
        self.need_command();
    }

    /// Requires a command after a reserved word or an operator.
    pub(super) fn need_command(&mut self) {
        let list = self.list();
        list.needs_command = true;
        list.is_after_compound = false;
    }

    /// Opens a block of the current list, whose first command must follow.
    pub(super) fn open_block(&mut self, block: Block) {
        if self.list().is_after_compound && !self.list().needs_command {
            self.note(UnsupportedSyntax::Syntax);
        }
        let list = self.list();
        list.feeds_next = None;
        list.blocks.push(block);
        list.needs_command = true;
        list.is_after_compound = false;
        self.blocks += 1;
    }

    /// Closes the innermost block, which must be this one.
    pub(super) fn close_block(&mut self, block: Block) {
        match block {
            Block::Brace => {}
            Block::For(_) => self.note(UnsupportedSyntax::ForLoop),
            _ => self.note(UnsupportedSyntax::ControlFlow),
        }
        // `{ }` and `&& }` are not valid; `case x in esac` is.
        let list = self.list();
        let is_wrong = list.blocks.last() != Some(&block) || (list.needs_command && block != Block::Case);
        if list.blocks.last() == Some(&block) {
            list.blocks.pop();
            self.blocks -= 1;
        }
        // A command before the block in its list may skip it, for example in `false && { …; }`.
        self.script.runs += 1;
        let run = self.script.runs;
        let list = self.list();
        (list.run, list.joined) = (run, true);
        list.needs_command = false;
        list.is_after_compound = true;
        list.last_command = None;
        list.commands += 1;
        if is_wrong {
            self.note(UnsupportedSyntax::Syntax);
        }
    }

    /// Discards the current command: its words were the name of a function.
    pub(super) fn reset_command(&mut self) {
        let list = self.list();
        list.command = SimpleCommand::default();
        list.is_started = false;
    }

    /// Ends the current command, if there is one. `operator` is the sign behind it; `None` at the end of a list.
    pub(super) fn end_command(&mut self, operator: Option<Operator>) {
        if self.list().redir.take().is_some() {
            self.note(UnsupportedSyntax::Syntax);
        }
        let derived = self.derived;
        let substituted = derived || self.pending_heres.len() > 1;
        let is_looped = self.is_in_loop();
        let index = self.script.commands.len();
        let list = self.list();
        let head = list.head;
        if head == Head::Time {
            list.head = Head::None;
        }
        let had_command = list.is_started || list.is_after_compound || head == Head::Time;
        let has_content = list.is_started || !list.command.redirs.is_empty();
        if has_content {
            let mut command = std::mem::take(&mut list.command);
            (command.scope, command.run, command.joined) = (list.scope, list.run, list.joined);
            command.then =
                Some(if operator == Some(Operator::And) { Connector::And } else { Connector::Other });
            command.derived = derived;
            command.substituted = substituted;
            command.is_looped = is_looped;
            command.piped_from = list.feeds_next.take();
            list.commands += 1;
            list.last_command = (!list.is_after_compound).then_some(index);
            self.script.commands.push(command);
        } else {
            list.command = SimpleCommand::default();
        }
        let ends_run = (had_command || has_content) && operator != Some(Operator::And);
        if ends_run {
            self.script.runs += 1;
        }
        let run = self.script.runs;
        let list = self.list();
        if ends_run {
            list.run = run;
            list.joined = operator == Some(Operator::Joins);
        }
        list.is_started = false;
        if had_command {
            list.is_after_compound = false;
            list.needs_command = false;
            list.is_after_pipe = false;
        }
        let is_wrong = match operator {
            // Newlines are allowed where a command may begin.
            None | Some(Operator::Newline) => false,
            Some(Operator::EndsCase) => {
                let in_case = list.blocks.last() == Some(&Block::Case);
                list.needs_command = false;
                if in_case {
                    list.head = Head::CasePattern;
                }
                !in_case
            }
            Some(Operator::Semicolon) if list.head == Head::LoopWords => false,
            Some(_) => !had_command,
        };
        if matches!(operator, Some(Operator::Newline | Operator::Semicolon)) && list.head == Head::LoopWords {
            list.head = Head::None;
            self.end_loop_words();
        }
        let list = self.list();
        if matches!(operator, Some(Operator::And | Operator::Joins)) {
            list.needs_command = true;
        }
        if is_wrong {
            self.note(UnsupportedSyntax::Syntax);
        }
    }
}
