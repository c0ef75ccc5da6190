//! Addresses that WebFetch may reach: those of the public Internet, and configured ones.
//!
//! The other ranges are in IANA's special-purpose registries for IPv4 and IPv6 (RFC 6890 and its updates).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Address ranges that WebFetch must not reach: address and prefix length.
const CLOSED_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by carriers (CGNAT).
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Azure's host, which every machine there can reach.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local; metadata services of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved, broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Public addresses lie in 2000::/3, except for these.
const CLOSED_V6: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments, including Teredo.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4: an embedded IPv4 address.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether the address is public.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !CLOSED_V4.iter().any(|(net, bits)| covers_v4(*net, *bits, v4)),
        // Embedded IPv4 addresses of other kinds (v4-mapped, NAT64, …) lie outside of 2000::/3.
        IpAddr::V6(v6) => {
            covers_v6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, v6)
                && !CLOSED_V6.iter().any(|(net, bits)| covers_v6(*net, *bits, v6))
        }
    }
}

fn covers_v4(net: Ipv4Addr, bits: u32, address: Ipv4Addr) -> bool {
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    u32::from(net) & mask == u32::from(address) & mask
}

fn covers_v6(net: Ipv6Addr, bits: u32, address: Ipv6Addr) -> bool {
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    u128::from(net) & mask == u128::from(address) & mask
}

/// Non-public addresses that WebFetch may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRanges(Vec<(IpAddr, u32)>);

/// The error for a text that is not an address or range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address or range; write it like 127.0.0.1 or 10.0.0.0/8")]
pub struct InvalidRange(String);

impl AddressRanges {
    /// Parses addresses (`::1`) and ranges (`10.0.0.0/8`).
    ///
    /// # Errors
    /// The first text that is neither.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, InvalidRange> {
        let parse_range = |text: &str| {
            let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
            let address = IpAddr::from_str(address).ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(most), |bits| bits.parse().ok()).filter(|bits| *bits <= most)?;
            Some((address, bits))
        };
        let ranges = texts.iter().map(|text| {
            parse_range(text.as_ref().trim()).ok_or_else(|| InvalidRange(text.as_ref().to_owned()))
        });
        Ok(Self(ranges.collect::<Result<_, _>>()?))
    }

    /// Whether the address may be reached.
    pub(crate) fn allow(&self, address: IpAddr) -> bool {
        is_public(address)
            || self.0.iter().any(|(net, bits)| match (net, address) {
                (IpAddr::V4(net), IpAddr::V4(address)) => covers_v4(*net, *bits, address),
                (IpAddr::V6(net), IpAddr::V6(address)) => covers_v6(*net, *bits, address),
                _ => false,
            })
    }
}
