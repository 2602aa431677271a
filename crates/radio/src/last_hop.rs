//! The kinds of last hops: one line each. Scenario files, the simulator and the lab ask this list.

use crate::plan::{Build, Observe, Plan};
use crate::wifi::Air;
use crate::wired::Wire;
use crate::{Hop, NextEvent, Packet, cables, cell, trace, wifi};
use lasthop_units::{Seed, Time};

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
            $( $(#[doc = $doc])* $kind(Box<<$plan as Build>::Model<P>>), )*
        }

        $(
            impl From<$plan> for LastHop {
                fn from(plan: $plan) -> LastHop {
                    LastHop::$kind(Box::new(plan))
                }
            }
        )*

        impl LastHop {
            /// As [`Build::build`].
            ///
            /// # Panics
            /// If there are more stations than nodes have numbers.
            pub fn build<P: Clone>(self, stations: usize, seed: Seed) -> Model<P> {
                let stations = u16::try_from(stations).expect("a hop holds at most 1024 nodes");
                match self { $( LastHop::$kind(plan) => Model::$kind(Box::new(plan.build(stations, seed))), )* }
            }

            /// The plan, to be asked.
            pub fn plan(&self) -> &dyn Plan {
                match self { $( LastHop::$kind(plan) => plan.as_ref(), )* }
            }

            /// The plan, to be changed.
            pub fn plan_mut(&mut self) -> &mut dyn Plan {
                match self { $( LastHop::$kind(plan) => plan.as_mut(), )* }
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

            #[inline(always)]
            fn advance(&mut self, now: Time, out: &mut O) {
                match self {
                    Model::Cable(hop) => hop.advance(now, out),
                    $( Model::$kind(hop) => hop.advance(now, out), )*
                }
            }
        }

        impl<P: Clone> NextEvent for Model<P> {
            #[inline(always)]
            fn next_event(&self) -> Option<Time> {
                match self {
                    Model::Cable(hop) => hop.next_event(),
                    $( Model::$kind(hop) => hop.next_event(), )*
                }
            }
        }

        impl<P: Clone> Model<P> {
            /// The model, to be asked between its events.
            pub fn observe(&self) -> &dyn Observe {
                match self { Model::Cable(cable) => cable, $( Model::$kind(hop) => hop.as_ref(), )* }
            }

            /// The same, for what looks ahead.
            pub fn observe_mut(&mut self) -> &mut dyn Observe {
                match self { Model::Cable(cable) => cable, $( Model::$kind(hop) => hop.as_mut(), )* }
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
