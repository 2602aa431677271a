//! The kinds of last hops: one line each. Scenario files, the simulator and the lab ask this list.

use crate::plan::{Observe, Plan};
use crate::queue::HopQueue;
use crate::wifi::Air;
use crate::wired::Wire;
use crate::{Hop, NextEvent, Packet, cables, cell, trace, wifi};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};

/// Makes of the list what holds any kind of hop, as a plan and as a model, and passes every question on to the kind that it holds.
macro_rules! last_hops {
    ($( $(#[doc = $doc:literal])* $kind:ident: $plan:ty, )*) => {
        /// The last hop before it is built.
        #[derive(Clone, Debug, PartialEq)]
        pub enum LastHop {
            $( $(#[doc = $doc])* $kind(Box<$plan>), )*
        }

        /// A hop at work: a last hop, or a cable between two hosts.
        #[derive(Clone, Debug)]
        pub enum Model<P: Clone> {
            /// A cable between two nodes.
            Cable(Wire<P>),
            $( $(#[doc = $doc])* $kind(Box<<$plan as Plan>::Model<P>>), )*
        }

        $(
            impl From<$plan> for LastHop {
                fn from(plan: $plan) -> LastHop {
                    LastHop::$kind(Box::new(plan))
                }
            }
        )*

        impl LastHop {
            /// As [`Plan::build`].
            ///
            /// # Panics
            /// If there are more stations than nodes have numbers.
            pub fn build<P: Clone>(self, stations: usize, seed: Seed) -> Model<P> {
                let stations = u16::try_from(stations).expect("a hop holds at most 1024 nodes");
                match self { $( LastHop::$kind(plan) => Model::$kind(Box::new(plan.build(stations, seed))), )* }
            }

            /// As [`Plan::IS`].
            pub fn is(&self) -> &'static str {
                match self { $( LastHop::$kind(_) => <$plan>::IS, )* }
            }

            /// As [`Plan::nodes`].
            pub fn nodes(&self, stations: usize) -> usize {
                match self { $( LastHop::$kind(plan) => plan.nodes(stations), )* }
            }

            /// As [`Plan::access_point_of`].
            pub fn access_point_of(&self, station: usize) -> Node {
                match self { $( LastHop::$kind(plan) => plan.access_point_of(station), )* }
            }

            /// As [`Plan::mesh`].
            pub fn mesh(&self) -> Option<Vec<(Node, Node)>> {
                match self { $( LastHop::$kind(plan) => plan.mesh(), )* }
            }

            /// As [`Plan::lone_exchanges`].
            pub fn lone_exchanges(&self) -> Vec<Span> {
                match self { $( LastHop::$kind(plan) => plan.lone_exchanges(), )* }
            }

            /// As [`Plan::least_rate`].
            pub fn least_rate(&self) -> Rate {
                match self { $( LastHop::$kind(plan) => plan.least_rate(), )* }
            }

            /// As [`Plan::queue`].
            pub fn queue(&self) -> Option<HopQueue> {
                match self { $( LastHop::$kind(plan) => plan.queue(), )* }
            }

            /// As [`Plan::set_queue`].
            pub fn set_queue(&mut self, queue: HopQueue) -> bool {
                match self { $( LastHop::$kind(plan) => plan.set_queue(queue), )* }
            }

            /// As [`Plan::show_capacity`].
            pub fn show_capacity(&mut self) {
                match self { $( LastHop::$kind(plan) => plan.show_capacity(), )* }
            }
        }

        impl<P: Clone, O: Air<P>> Hop<P, O> for Model<P> {
            #[inline(always)]
            fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
                match self {
                    Model::Cable(hop) => hop.enqueue(now, packet, out),
                    $( Model::$kind(hop) => hop.enqueue(now, packet, out), )*
                }
            }

            #[inline]
            fn advance(&mut self, now: Time, out: &mut O) {
                match self {
                    Model::Cable(hop) => hop.advance(now, out),
                    $( Model::$kind(hop) => hop.advance(now, out), )*
                }
            }
        }

        impl<P: Clone> NextEvent for Model<P> {
            #[inline]
            fn next_event(&self) -> Option<Time> {
                match self {
                    Model::Cable(hop) => hop.next_event(),
                    $( Model::$kind(hop) => hop.next_event(), )*
                }
            }
        }

        impl<P: Clone> Observe for Model<P> {
            fn waiting(&self, from: Node, to: Node) -> usize {
                match self {
                    Model::Cable(cable) => cable.backlog(from),
                    $( Model::$kind(hop) => Observe::waiting(hop.as_ref(), from, to), )*
                }
            }

            fn decoded(&self, node: Node) -> Option<Bytes> {
                match self { Model::Cable(_) => None, $( Model::$kind(hop) => Observe::decoded(hop.as_ref(), node), )* }
            }

            fn octets_waiting(&self, station: Node) -> Bytes {
                match self { Model::Cable(_) => Bytes::ZERO, $( Model::$kind(hop) => Observe::octets_waiting(hop.as_ref(), station), )* }
            }

            fn active_carriers(&mut self, station: Node) -> usize {
                match self { Model::Cable(_) => 0, $( Model::$kind(hop) => Observe::active_carriers(hop.as_mut(), station), )* }
            }
        }
    };
}

last_hops! {
    /// A cable to each station.
    Wired: cables::Plan,
    /// An 802.11 BSS and its neighbours on the channel. Node 0 is the access point, then come the stations, then two nodes a
    /// neighbour, then further access points.
    Wifi: wifi::Plan,
    /// An LTE cell. Node 0 is the base station, then come the stations.
    Cell: cell::Plan,
    /// A link to each station that plays a recorded trace.
    Trace: trace::Plan,
}
