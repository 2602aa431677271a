//! What an agent shows of itself while it runs: to callers (`lasthop status`), and to viewers that
//! its program brings.

use super::clock::monotonic_now;
use super::error::{Error, system};
use super::owner::{self, Claim};
use super::{privileges, status_socket};
use lasthop_units::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// An agent at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Status<State> {
    /// Which agent: the name of its command.
    pub agent: String,
    /// Its interface.
    pub iface: String,
    /// Its process.
    pub pid: u32,
    /// Seconds since it began.
    pub running_s: f64,
    /// What agents of its kind show beside.
    #[serde(flatten)]
    pub state: State,
    /// What it has done so far: its account.
    pub done: Map<String, Value>,
}

/// Is shown an agent's status as it runs.
pub trait Viewer<State>: fmt::Debug + Send + Sync {
    /// Serves what was shown last, for ever, on a thread without any privilege that the agent starts
    /// once it is attached.
    fn serve(&self);

    /// Takes what is so now, twice a second; returns at once.
    fn show(&self, status: &Status<State>);
}

/// An interface that is this process's, and what it shows of itself.
pub struct Shown<State> {
    claim: Claim,
    agent: &'static str,
    iface: String,
    began: Time,
    viewers: Vec<Arc<dyn Viewer<State>>>,
}

impl<State: Serialize + 'static> Shown<State> {
    /// Claims the interface with this number for an agent of a kind.
    ///
    /// # Errors
    /// [`Error::Busy`] if a process that lives has it; [`Error::System`].
    pub fn claim(
        agent: &'static str,
        (iface, index): (&str, i32),
        viewers: Vec<Arc<dyn Viewer<State>>>,
    ) -> Result<Shown<State>, Error> {
        let claim = owner::claim(agent, index)?;
        Ok(Shown { claim, agent, iface: iface.to_owned(), began: monotonic_now(), viewers })
    }

    /// Starts the viewers' threads. They give up what is left of the agent's privileges.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn serve(&self) -> Result<(), Error> {
        for viewer in self.viewers.clone() {
            let serve = move || {
                if privileges::drop_all_but(&[]).is_ok() {
                    viewer.serve();
                }
            };
            let started = std::thread::Builder::new().name("lasthop-viewer".to_owned()).spawn(serve);
            started.map_err(system("a thread for the viewer"))?;
        }
        Ok(())
    }

    /// Answers all callers, and shows the viewers what is so now.
    pub fn show(&self, now: impl Fn() -> (State, Map<String, Value>)) {
        let status = || {
            let (state, done) = now();
            let running_s = monotonic_now().since(self.began).as_secs_f64();
            let (agent, iface) = (self.agent.to_owned(), self.iface.clone());
            Status { agent, iface, pid: std::process::id(), running_s, state, done }
        };
        status_socket::answer(&self.claim, status);
        if !self.viewers.is_empty() {
            let status = status();
            self.viewers.iter().for_each(|viewer| viewer.show(&status));
        }
    }
}

/// Asks the agents of this network namespace, or those on one interface, for their statuses.
///
/// # Errors
/// [`Error::NoInterface`]; [`Error::System`] if one does not answer within three seconds, or not as
/// an agent does: one of another version, one that is stopped, or one of another user's that does
/// not answer us.
pub fn ask(iface: Option<&str>) -> Result<Vec<Map<String, Value>>, Error> {
    let index = iface.map(|name| super::device::link(name).map(|link| link.index.cast_signed())).transpose()?;
    let claims = owner::claims().map_err(system("the agents of this network namespace"))?;
    let asked = claims.iter().filter(|(_, of)| index.is_none_or(|index| *of == index));
    let answers = asked.filter_map(|(kind, index)| status_socket::ask(kind, *index).transpose());
    answers.collect::<Result<_, _>>().map_err(system("the agent's answer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::counters::{account, counters};

    counters! {
        /// What is counted here.
        pub struct Tally {
            /// Datagrams
            /// that came.
            #[metric("datagrams")]
            pub came: u64,
            /// The most at once.
            #[serde(rename = "most_at_once")]
            pub most: u32,
        }
    }

    #[test]
    fn a_caller_is_told_every_counter_by_its_name() {
        let shown = Shown::<()>::claim("trial", ("lo", i32::MAX - 9), Vec::new()).expect("it is free");
        let caller = std::thread::spawn(|| status_socket::ask::<Status<()>>("trial", i32::MAX - 9));
        while !caller.is_finished() {
            shown.show(|| ((), account(&Tally { came: 3, most: 2 })));
        }
        let status = caller.join().expect("no panic").expect("it may ask").expect("an agent is there");
        assert_eq!((status.agent.as_str(), status.iface.as_str(), status.pid), ("trial", "lo", std::process::id()));
        let names: Vec<&str> = Tally::MEANINGS.iter().map(|meaning| meaning.name).collect();
        assert_eq!(names, status.done.keys().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((&status.done["came"], &status.done["most_at_once"]), (&3.into(), &2.into()));
        let metrics: Vec<&str> = Tally::MEANINGS.iter().map(|meaning| meaning.metric).collect();
        assert_eq!((metrics, Tally::MEANINGS[0].doc.len()), (vec!["datagrams", "most_at_once"], 2));
    }
}
