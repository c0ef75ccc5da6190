//! The one integration binary: scenarios against real parts, each a module.

mod contract;
mod crash;
mod layers;
mod model_adapters;
mod scenarios;
mod support;
