//! The fields of a reading as programs read them: JSON lines and columns have the same ones.
//!
//! What each field holds: docs/reference/logs.md.

use super::Reading;
use lasthop_units::{Bytes, Rate, Span};
use lasthop_wire::tcp_info::CaState;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::net::SocketAddr;

/// A field's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// Not known.
    Null,
    /// A number.
    Number(u64),
    /// True or false.
    Flag(bool),
    /// A word.
    Text(&'a str),
    /// An address and a port, which are written as text.
    Address(SocketAddr),
}

/// What kind of values a field has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// [`Value::Number`].
    Number,
    /// [`Value::Flag`].
    Flag,
    /// [`Value::Text`] or [`Value::Address`].
    Text,
}

/// A field: its name with its unit, its kind, and its value in a reading.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What values it has, if it is not null.
    pub kind: Kind,
    /// Its value.
    pub of: for<'a> fn(&'a Reading) -> Value<'a>,
}

/// Version of what the fields are called and mean. A new field does not change it.
pub const SCHEMA: u64 = 1;

const fn number(name: &'static str, of: for<'a> fn(&'a Reading) -> Value<'a>) -> Field {
    Field { name, kind: Kind::Number, of }
}

const fn text(name: &'static str, of: for<'a> fn(&'a Reading) -> Value<'a>) -> Field {
    Field { name, kind: Kind::Text, of }
}

/// Every field, in the order in which they are written.
pub const FIELDS: &[Field] = &[
    number("schema", |_| Value::Number(SCHEMA)),
    number("t_ns", |r| Value::Number(r.at.as_nanos())),
    number("cookie", |r| Value::Number(r.socket.cookie)),
    text("local", |r| Value::Address(r.socket.local)),
    text("peer", |r| Value::Address(r.socket.peer)),
    text("state", |r| Value::Text(r.socket.state.name())),
    number("uid", |r| Value::Number(r.socket.uid.into())),
    number("inode", |r| Value::Number(r.socket.inode.into())),
    text("cc", |r| Value::Text(r.socket.congestion_control.as_str())),
    text("ca_state", |r| Value::Text(r.info.ca_state.name())),
    number("disorder_entries", |r| entries(r, CaState::Disorder)),
    number("cwr_entries", |r| entries(r, CaState::Cwr)),
    number("recovery_entries", |r| entries(r, CaState::Recovery)),
    number("loss_entries", |r| entries(r, CaState::Loss)),
    number("cwnd_packets", |r| Value::Number(r.info.cwnd.into())),
    number("ssthresh_packets", |r| count(r.info.ssthresh)),
    number("in_flight_packets", |r| Value::Number(r.info.in_flight().into())),
    number("unacked_packets", |r| Value::Number(r.info.unacked.into())),
    number("retransmitted_packets", |r| Value::Number(r.info.total_retrans.into())),
    number("mss_bytes", |r| Value::Number(r.info.mss.get())),
    number("rtt_us", |r| micros(r.info.rtt)),
    number("rttvar_us", |r| micros(Some(r.info.rttvar))),
    number("min_rtt_us", |r| micros(r.info.min_rtt)),
    number("unsent_bytes", |r| octets(r.info.notsent)),
    number("send_queue_bytes", |r| octets(Some(r.socket.send_queue))),
    number("receive_queue_bytes", |r| octets(Some(r.socket.receive_queue))),
    number("peer_window_bytes", |r| octets(r.info.snd_wnd)),
    number("own_window_bytes", |r| octets(r.info.rcv_wnd)),
    number("delivery_bps", |r| rate(r.info.delivery_rate)),
    number("pacing_bps", |r| rate(r.info.pacing_rate)),
    Field { name: "app_limited", kind: Kind::Flag, of: |r| Value::Flag(r.info.app_limited) },
    number("acked_bytes", |r| octets(r.info.bytes_acked)),
    number("received_bytes", |r| octets(r.info.bytes_received)),
    number("busy_us", |r| micros(r.info.busy_time)),
    number("receiver_limited_us", |r| micros(r.info.rwnd_limited)),
    number("send_buffer_limited_us", |r| micros(r.info.sndbuf_limited)),
    number("interval_ns", |r| r.recent.map_or(Value::Null, |recent| Value::Number(recent.interval.as_nanos()))),
    number("sent_bps", |r| rate(r.recent.map(|recent| recent.sent))),
    number("received_bps", |r| rate(r.recent.map(|recent| recent.received))),
    text("limit", |r| r.recent.and_then(|recent| recent.limit).map_or(Value::Null, |limit| Value::Text(limit.name()))),
];

fn entries(reading: &Reading, state: CaState) -> Value<'_> {
    count(reading.entries.map(|entries| entries.of(state)))
}

fn count(number: Option<u32>) -> Value<'static> {
    number.map_or(Value::Null, |number| Value::Number(number.into()))
}

fn micros(span: Option<Span>) -> Value<'static> {
    span.map_or(Value::Null, |span| Value::Number(span.as_micros()))
}

fn octets(amount: Option<Bytes>) -> Value<'static> {
    amount.map_or(Value::Null, |amount| Value::Number(amount.get()))
}

fn rate(rate: Option<Rate>) -> Value<'static> {
    rate.map_or(Value::Null, |rate| Value::Number(rate.as_bps()))
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => to.serialize_none(),
            Value::Number(number) => to.serialize_u64(*number),
            Value::Flag(flag) => to.serialize_bool(*flag),
            Value::Text(text) => to.serialize_str(text),
            Value::Address(address) => to.collect_str(address),
        }
    }
}

/// A reading is written as an object of all fields.
impl Serialize for Reading {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(FIELDS.len()))?;
        for field in FIELDS {
            map.serialize_entry(field.name, &(field.of)(self))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{MONITOR, lists_exactly};
    use crate::host::readings::{reading, sending};
    use serde_json::{Value as Json, json};

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let line = serde_json::to_value(sending("10.1.2.3:40000", "[2001:db8::1]:443")).expect("JSON");
        lists_exactly(MONITOR, &line);
        assert_eq!(line["peer"], "[2001:db8::1]:443");
        assert_eq!((&line["sent_bps"], &line["limit"]), (&json!(8_000_000), &json!("network")));
        assert_eq!((&line["recovery_entries"], &line["loss_entries"]), (&json!(2), &json!(1)));
        assert!(line.as_object().expect("an object").values().all(|value| !value.is_null()), "{line}");
    }

    #[test]
    fn what_is_not_known_is_null_and_values_are_of_their_kind() {
        let reading = reading("10.1.2.3:40000", "192.0.2.9:443");
        let line = serde_json::to_value(reading).expect("JSON");
        assert_eq!((&line["limit"], &line["ssthresh_packets"]), (&Json::Null, &Json::Null));
        for field in FIELDS {
            let is = match (field.of)(&sending("10.1.2.3:40000", "192.0.2.9:443")) {
                Value::Null => panic!("{} is null", field.name),
                Value::Number(_) => Kind::Number,
                Value::Flag(_) => Kind::Flag,
                Value::Text(_) | Value::Address(_) => Kind::Text,
            };
            assert_eq!(is, field.kind, "{}", field.name);
        }
    }
}
