//! The loop of an agent that waits for sockets and for moments: what is due, then a wait, then what
//! is ready.

use super::clock;
use super::error::{Error, system};
use super::poll::{Poll, Ready};
use super::spin_sleeper::{SpinSleeper, Until};
use super::stop::Stop;
use lasthop_units::Time;

/// What an agent does in its turns.
pub(crate) trait Turns {
    /// Why it cannot go on.
    type Error: From<Error>;

    /// One part in so many of the time spent waiting may be spent watching the clock, where
    /// something must be done at a moment.
    const WATCHING: u64 = 1;

    /// The sockets that are waited for.
    fn poll(&mut self) -> &mut Poll;

    /// Does what is due.
    ///
    /// # Errors
    /// Why the agent cannot go on.
    fn service(&mut self, now: Time) -> Result<(), Self::Error>;

    /// When something is due next.
    fn next(&mut self, now: Time) -> Until;

    /// Takes what is ready.
    ///
    /// # Errors
    /// Why the agent cannot go on.
    fn on_ready(&mut self, now: Time, event: Ready) -> Result<(), Self::Error>;

    /// True once the agent has ended what it does.
    fn is_over(&mut self, _now: Time, stop: &Stop) -> bool {
        stop.is_asked()
    }
}

/// Lets an agent have its turns until it is over.
///
/// # Errors
/// Those of the agent, [`Error::System`].
pub(crate) fn run<Agent: Turns>(agent: &mut Agent, stop: &Stop) -> Result<(), Agent::Error> {
    let mut sleeper = SpinSleeper::new(Agent::WATCHING);
    loop {
        let now = clock::now();
        if agent.is_over(now, stop) {
            return Ok(());
        }
        agent.service(now)?;
        let until = agent.next(clock::now());
        let ready = sleeper.wait(agent.poll(), clock::now, until).map_err(system("waiting for packets"))?;
        let now = clock::now();
        for n in 0..ready {
            let event = agent.poll().ready(n);
            agent.on_ready(now, event)?;
        }
    }
}
