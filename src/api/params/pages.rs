//! Methods that answer in pages: the parameters take a cursor, and the reply names the next one.

use types::audit::AuditEntry;
use types::event::Envelope;
use types::knowledge::Document;
use types::ledger::LedgerRow;
use types::model::ModelView;
use types::queue::QueuedTurn;
use types::session::FileDiff;
use types::session::{Item, SessionView};

use super::*;
use types::permission::RuleView;
use types::permission_request::PendingRequest;

/// Parameters of a method that answers in pages.
pub trait PageParams {
    /// Asks for the page that begins at a cursor.
    fn set_cursor(&mut self, cursor: String);
}

/// One page of a longer reply.
pub trait Page {
    /// The cursor of the next page; `None` on the last one.
    fn take_next_cursor(&mut self) -> Option<String>;
}

/// One page of a list.
pub trait ListPage: Page {
    /// One entry of the list.
    type Row;
    /// The entries of this page.
    fn into_rows(self) -> Vec<Self::Row>;
}

macro_rules! pages {
    ($($params:ident => $reply:ident $(, $rows:ident: $row:ty)?;)+) => {
        $(
            impl PageParams for $params {
                fn set_cursor(&mut self, cursor: String) {
                    self.cursor = Some(cursor);
                }
            }

            impl Page for $reply {
                fn take_next_cursor(&mut self) -> Option<String> {
                    self.next_cursor.take()
                }
            }

            $(
                impl ListPage for $reply {
                    type Row = $row;

                    fn into_rows(self) -> Vec<$row> {
                        self.$rows
                    }
                }
            )?
        )+
    };
}

pages! {
    AuditParams => AuditReply, entries: AuditEntry;
    DiffParams => DiffReply, files: FileDiff;
    EventsParams => EventsReply, events: Envelope;
    ExportParams => ExportReply;
    ItemsParams => ItemsReply, items: Item;
    KnowledgeDocumentsParams => KnowledgeDocumentsReply, documents: Document;
    ListParams => ListReply, sessions: SessionView;
    ModelListParams => ModelListReply, models: ModelView;
    ModelUsageParams => ModelUsageReply, rows: LedgerRow;
    PermissionListParams => PermissionListReply, requests: PendingRequest;
    QueueListParams => QueueReply, queue: QueuedTurn;
    RulesParams => RulesReply, rules: RuleView;
    ToolListParams => ToolListReply, tools: ToolView;
}
