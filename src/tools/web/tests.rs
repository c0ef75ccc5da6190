//! Tests of public addresses and of URL parsing.

use std::net::IpAddr;

use super::hop::{host, parse};
use crate::address::{AddressRanges, is_public};

#[test]
fn private_and_reserved_addresses_are_not_public() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "100.63.0.1",
        "100.128.0.1",
        "198.17.0.1",
        "198.20.0.1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "2001:4860:4860::8888",
    ] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.8.9.1",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "5f00::1",
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn configured_private_ranges_allow_listed_addresses_only() {
    let ranges = AddressRanges::parse(&["127.0.0.1", "10.1.0.0/16", "fd00::/8", "::1"]).unwrap();
    for (address, expected) in [
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("10.1.2.3", true),
        ("10.2.0.1", false),
        ("fd12::1", true),
        ("::1", true),
        ("::2", false),
        ("::ffff:127.0.0.1", false),
        ("1.1.1.1", true),
    ] {
        assert_eq!(ranges.allow(address.parse::<IpAddr>().unwrap()), expected, "{address}");
    }
    for wrong in ["localhost", "10.0.0.0/33", "::1/129", "", "10.0.0.0/", "10.0.0/8"] {
        assert!(AddressRanges::parse(&[wrong]).unwrap_err().to_string().contains("10.0.0.0/8"));
    }
    assert!(AddressRanges::parse(&["0.0.0.0/0"]).unwrap().allow("127.0.0.1".parse().unwrap()));
}

#[test]
fn urls_are_normalised_as_in_browsers() {
    for (text, expected) in [
        ("https://Example.org/a#b", Ok(("example.org", "https://example.org/a"))),
        (" http://example.org ", Ok(("example.org", "http://example.org/"))),
        ("http://127.1/", Ok(("127.0.0.1", "http://127.0.0.1/"))),
        ("http://2130706433/", Ok(("127.0.0.1", "http://127.0.0.1/"))),
        ("http://0x7f000001/", Ok(("127.0.0.1", "http://127.0.0.1/"))),
        ("http://[::1]:80/", Ok(("::1", "http://[::1]/"))),
        ("https://\u{ff45}xample.org/", Ok(("example.org", "https://example.org/"))),
        ("https://münchen.de/", Ok(("xn--mnchen-3ya.de", "https://xn--mnchen-3ya.de/"))),
        ("https://a.org\\@b.org/", Ok(("a.org", "https://a.org/@b.org/"))),
        ("example.org", Err("bad_url")),
        ("file:///etc/passwd", Err("bad_url")),
        ("ftp://example.org/", Err("bad_url")),
        ("data:text/html,x", Err("bad_url")),
        ("https://user:pass@example.org/", Err("url_with_credentials")),
        ("https://user@example.org/", Err("url_with_credentials")),
        ("https:///", Err("bad_url")),
        ("https://exa\nmple.org/", Err("bad_url")),
    ] {
        let got = parse(text);
        let got = got.as_ref().map(|url| (host(url), url.to_string())).map_err(|refusal| refusal.code);
        assert_eq!(got, expected.map(|(host, url)| (host.to_owned(), url.to_owned())), "{text:?}");
    }
}
