//! The one integration binary: scenarios against real parts, each a module.

mod model_adapters;
mod support;
