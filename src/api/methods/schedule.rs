//! The methods about schedules.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Creates a schedule, which creates jobs at given times, and returns it.
    Create = "schedule.create", types::schedule::NewSchedule => p::ScheduleReply,
        CHANGES.waits().errors(&[Code::Conflict, Code::Overloaded, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Changes a schedule and returns it. Its jobs stay as they are.
    Update = "schedule.update", types::schedule::ScheduleUpdate => p::ScheduleReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Returns one schedule.
    Get = "schedule.get", p::ScheduleParams => p::ScheduleReply, READS.errors(&[Code::NotFound]);
    /// Returns all schedules, oldest first.
    List = "schedule.list", p::NoParams => p::ScheduleListReply, READS;
    /// Deletes a schedule and returns it. Its jobs stay.
    Delete = "schedule.delete", p::ScheduleChangeParams => p::ScheduleReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Creates a job of the schedule now, whatever its times and its earlier jobs are, and returns the schedule.
    Trigger = "schedule.trigger", p::ScheduleChangeParams => p::ScheduleReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::Overloaded, Code::StorageReadOnly]);
    /// Returns the next times of a pattern.
    Next = "schedule.next", p::ScheduleNextParams => p::ScheduleNextReply, READS;
}
