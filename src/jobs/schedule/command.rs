//! Commands of the handle to the runner.

use crate::task::Reply;
use session::IdempotencyKey;
use types::event::Origin;
use types::ids::ScheduleId;
use types::schedule::{NewSchedule, Schedule, ScheduleUpdate};

/// A command to the runner.
pub(super) enum ScheduleCommand {
    Edit { edit: ScheduleEdit, keyed: Option<IdempotencyKey>, origin: Origin, reply: Reply<Schedule> },
    Trigger { id: ScheduleId, keyed: Option<IdempotencyKey>, origin: Origin, reply: Reply<Schedule> },
    Get(ScheduleId, Reply<Schedule>),
    List(Reply<Vec<Schedule>>),
}

/// A change of a schedule by a client.
pub(super) enum ScheduleEdit {
    Create(Box<NewSchedule>),
    Update(Box<ScheduleUpdate>),
    Delete(ScheduleId),
}
