//! `schedule.*`

use std::sync::Arc;

use super::convert;
use super::job::fault;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{
    NoParams, ScheduleChangeParams, ScheduleListReply, ScheduleNextParams, ScheduleNextReply, ScheduleParams,
    ScheduleReply,
};
use api::{Code, Fault};
use types::schedule::{NewSchedule, ScheduleUpdate};

/// Maximum number of times of `schedule.next`.
const MAX_TIMES: u32 = 1_000;

pub(super) async fn create(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: NewSchedule,
) -> Result<ScheduleReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let schedule = ctx.schedules.create(p, keyed, caller.origin()).await.map_err(fault)?;
    Ok(ScheduleReply { schedule })
}

pub(super) async fn update(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ScheduleUpdate,
) -> Result<ScheduleReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let schedule = ctx.schedules.update(p, keyed, caller.origin()).await.map_err(fault)?;
    Ok(ScheduleReply { schedule })
}

pub(super) async fn get(ctx: Arc<RpcContext>, _: Caller, p: ScheduleParams) -> Result<ScheduleReply, Fault> {
    Ok(ScheduleReply { schedule: ctx.schedules.get(p.schedule_id).await.map_err(fault)? })
}

pub(super) async fn list(ctx: Arc<RpcContext>, _: Caller, _: NoParams) -> Result<ScheduleListReply, Fault> {
    Ok(ScheduleListReply { schedules: ctx.schedules.list().await.map_err(fault)? })
}

pub(super) async fn delete(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ScheduleChangeParams,
) -> Result<ScheduleReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let schedule = ctx.schedules.delete(p.schedule_id, keyed, caller.origin()).await.map_err(fault)?;
    Ok(ScheduleReply { schedule })
}

pub(super) async fn trigger(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ScheduleChangeParams,
) -> Result<ScheduleReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let schedule = ctx.schedules.trigger(p.schedule_id, keyed, caller.origin()).await.map_err(fault)?;
    Ok(ScheduleReply { schedule })
}

pub(super) async fn next(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: ScheduleNextParams,
) -> Result<ScheduleNextReply, Fault> {
    if !(1..=MAX_TIMES).contains(&p.count) {
        let why = format!("count: expected a number from 1 to {MAX_TIMES}");
        return Err(Fault::new(Code::InvalidParams, why).with("path", "count"));
    }
    let times_ms = ctx.schedules.preview(&p.cron, p.timezone.as_deref(), p.count as usize).map_err(fault)?;
    Ok(ScheduleNextReply { times_ms })
}
