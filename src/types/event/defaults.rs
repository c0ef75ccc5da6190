//! Default values of fields. An event omits a field that has its default value.

use crate::session::Subtype;

pub(super) const fn aborted() -> Subtype {
    Subtype::Aborted
}

pub(super) fn is_aborted(subtype: &Subtype) -> bool {
    *subtype == Subtype::Aborted
}

pub(super) const fn first() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) const fn is_first(attempt: &u8) -> bool {
    *attempt == 1
}
