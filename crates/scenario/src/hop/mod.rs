//! The kinds of last hops that files may have: one line each.

pub mod cell;
pub mod check;
mod kind;
mod trace;
pub mod wifi;
mod wired;

use crate::bounds::Run;
use crate::queue::Queue;
use crate::read::{At, Context, table};
use cell::table::CellHop;
use kind::HopTable;
use lasthop_radio::LastHop;
use lasthop_radio::queue::HopQueue;
use trace::TraceHop;
use wifi::table::WifiHop;
use wired::WiredHop;

/// Makes of the list the table `[hop]`, and asks the kind that a file has.
macro_rules! hops {
    ($( $(#[doc = $doc:literal])* $key:ident: $table:ty, )*) => {
        table! {
            /// The last hop: exactly one of these.
            Hop {
                $( $(#[doc = $doc])* optional $key: $table, )*
            }
        }

        impl Hop {
            /// Places of the kinds that the file has, in the order of the list.
            pub fn kinds(&self) -> Vec<&At> {
                [$( self.$key.given_at(), )*].into_iter().flatten().collect()
            }

            /// The keys of all kinds, in the order of the alphabet.
            pub fn all() -> Vec<&'static str> {
                let mut all = vec![$( stringify!($key), )*];
                all.sort_unstable();
                all
            }

            /// The hop that the only table describes.
            pub fn plan<F>(&self, file: &F, run: Run, cx: &mut Context) -> Option<LastHop>
            where
                $( $table: HopTable<F>, )*
            {
                $( if self.$key.given { return self.$key.get()?.plan(file, run, cx); } )*
                None
            }

            /// What messages call that hop.
            pub fn called<F>(&self) -> &'static str
            where
                $( $table: HopTable<F>, )*
            {
                $( if self.$key.given { return <$table>::CALLED; } )*
                ""
            }

            /// What a station of that hop has in place of the keys of others.
            pub fn instead<F>(&self) -> &'static str
            where
                $( $table: HopTable<F>, )*
            {
                $( if self.$key.given { return <$table>::INSTEAD; } )*
                ""
            }

            /// The access point's queue on that hop, as a law has it.
            pub fn queue<F>(&self, table: &Queue, cx: &mut Context) -> Option<HopQueue>
            where
                $( $table: HopTable<F>, )*
            {
                $( if self.$key.given { return <$table>::queue(table, cx); } )*
                None
            }
        }
    };
}

hops! {
    /// A cable to each station, for comparison.
    wired: WiredHop,
    /// An 802.11 BSS.
    wifi: WifiHop,
    /// An LTE cell.
    cell: CellHop,
    /// A link that follows a recorded trace.
    trace: TraceHop,
}
