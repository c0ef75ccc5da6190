//! The methods about schedules.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Create a schedule: what creates jobs at given times.
    Create = "schedule.create", types::schedule::NewSchedule => p::ScheduleReply,
        CHANGES.waits().errors(&[Code::Conflict, Code::Overloaded, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Change a schedule. Its jobs stay as they are.
    Update = "schedule.update", types::schedule::ScheduleUpdate => p::ScheduleReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// One schedule.
    Get = "schedule.get", p::ScheduleParams => p::ScheduleReply, READS.errors(&[Code::NotFound]);
    /// All schedules, oldest first.
    List = "schedule.list", p::NoParams => p::ScheduleListReply, READS;
    /// Delete a schedule. Its jobs stay.
    Delete = "schedule.delete", p::ScheduleChangeParams => p::ScheduleReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Create a job of the schedule now, whatever its times and its earlier jobs are.
    Trigger = "schedule.trigger", p::ScheduleChangeParams => p::ScheduleReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::Overloaded, Code::StorageReadOnly]);
    /// The next times of a pattern.
    Next = "schedule.next", p::ScheduleNextParams => p::ScheduleNextReply, READS;
}
