//! The registry of laws: all that there are, and the choice of one with what was set of it.
//!
//! A law declares its own [`Entry`], in its own file. The lists of entries stand beside the modules that hold the laws
//! ([`crate::LAWS`], [`crate::tcp::LAWS`]); scenario files, command lines, the agents' arguments, the reference page and the
//! conformance suite are made from them.

use crate::entry::{Build, Entry, Place, Transport};
use crate::param::{Param, Value};
use crate::tcp::{self, Setup};
use crate::{HopLaw, ParamError, ReceiverLaw, ReceiverSetup, SenderLaw, Settings};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};

impl Place {
    /// The laws that can run there, in the order of the registry.
    pub fn laws(self) -> impl Iterator<Item = &'static Entry> + Clone {
        all().filter(move |entry| entry.place == self)
    }

    /// The law called `name`, or by one of its other names.
    pub fn law(self, name: &str) -> Option<&'static Entry> {
        self.laws().find(|entry| entry.name == name || entry.aliases.contains(&name))
    }

    /// Every key of any of its laws, each once, with the laws that have it. A key means the same kind of value in all of them.
    pub fn parameters(self) -> Vec<(&'static Param, Vec<&'static Entry>)> {
        let mut keys: Vec<(&'static Param, Vec<&'static Entry>)> = Vec::new();
        for entry in self.laws() {
            for param in entry.table {
                match keys.iter_mut().find(|(known, _)| known.key == param.key) {
                    Some((_, laws)) => laws.push(entry),
                    None => keys.push((param, vec![entry])),
                }
            }
        }
        keys
    }
}

/// Every law, in the order of the lists.
pub fn all() -> impl Iterator<Item = &'static Entry> + Clone {
    crate::tcp::LAWS.iter().chain(crate::LAWS)
}

/// A new instance of the sender's law called `name`, nothing set; `None` if there is no such law.
pub fn by_name(name: &str, setup: Setup) -> Option<Box<dyn SenderLaw>> {
    Choice::of(Place::Sender.law(name)?).sender(setup).ok()
}

/// Why a law cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A parameter that cannot be.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A congestion control of the kernel, which no other world has.
    #[error("`{name}` is the kernel's: only the lab, whose senders are the kernel's, has it")]
    Kernel {
        /// Its name, as scenarios write it.
        name: String,
    },
    /// A law of another place.
    #[error("`{name}` is no law for this place")]
    Place {
        /// Its name.
        name: String,
    },
}

/// Names that begin like this are those of the kernel's congestion controls.
pub const KERNEL: &str = "kernel:";

/// A law that was chosen, with what was set of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    law: Chosen,
    settings: Settings,
}

#[derive(Clone, Debug, PartialEq)]
enum Chosen {
    Ours(&'static Entry),
    /// With [`KERNEL`] before it.
    Kernel(String),
}

impl Choice {
    /// A law of the registry, nothing set.
    pub fn of(entry: &'static Entry) -> Choice {
        Choice { law: Chosen::Ours(entry), settings: Settings::default() }
    }

    /// A congestion control of the kernel, by its name there: in the lab only.
    pub fn kernel(name: &str) -> Choice {
        Choice { law: Chosen::Kernel(format!("{KERNEL}{name}")), settings: Settings::default() }
    }

    /// The law of `place` called `name`, or for senders `kernel:NAME`; `None` if there is none.
    pub fn named(place: Place, name: &str) -> Option<Choice> {
        match name.strip_prefix(KERNEL) {
            Some(kernel) if place == Place::Sender => Some(Choice::kernel(kernel)),
            _ => place.law(name).map(Choice::of),
        }
    }

    /// The same with these settings.
    pub fn with(self, settings: Settings) -> Choice {
        Choice { settings, ..self }
    }

    /// Its name, as scenarios write it.
    pub fn name(&self) -> &str {
        match &self.law {
            Chosen::Ours(entry) => entry.name,
            Chosen::Kernel(name) => name,
        }
    }

    /// Its entry; `None` if it is the kernel's.
    pub fn entry(&self) -> Option<&'static Entry> {
        match &self.law {
            Chosen::Ours(entry) => Some(entry),
            Chosen::Kernel(_) => None,
        }
    }

    /// True for a congestion control that no kernel has, though TCP would carry it.
    pub fn is_ours_alone(&self) -> bool {
        self.entry().is_some_and(|entry| entry.transport == Transport::TCP && !tcp::LINUX.contains(&entry.name))
    }

    /// True for a congestion control that only the kernel has.
    pub fn is_kernel(&self) -> bool {
        self.entry().is_none()
    }

    /// What the kernel calls the congestion control.
    pub fn congestion(&self) -> &str {
        self.name().trim_start_matches(KERNEL)
    }

    /// What carries the payload of a sender with this law. The kernel's congestion controls are TCP's.
    pub fn transport(&self) -> Transport {
        self.entry().map_or(Transport::TCP, |entry| entry.transport)
    }

    /// The law of the receivers of a sender with this one, which is called as it is and has what is set of it; `None` if they have none.
    pub fn of_receiver(&self) -> Option<Choice> {
        let told = matches!(self.transport(), Transport::Atp | Transport::ReceiverFeedback);
        let law = Place::Receiver.law(self.name()).filter(|_| told)?;
        Some(Choice::of(law).with(self.settings.clone()))
    }

    /// How long the slots are that receivers tell this law of: its parameter `interval`; [`None`] without one.
    pub fn interval(&self) -> Option<Span> {
        self.values().into_iter().find_map(|(param, value)| match value {
            Value::Time(span) if param.key == "interval" => Some(span),
            _ => None,
        })
    }

    /// What was set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Every parameter with its value, set or not, in the order of the law's table.
    pub fn values(&self) -> Vec<(&'static Param, Value)> {
        let table = self.entry().map_or(&[][..], |entry| entry.table);
        let value = |param: &Param| self.settings.get(param.key).or_else(|| param.kind.parse(param.default).ok());
        table.iter().filter_map(|param| Some((param, value(param)?))).collect()
    }

    /// Checks that what was set makes a law. A congestion control of the kernel has nothing that could be wrong.
    ///
    /// # Errors
    /// The first parameter that cannot be.
    pub fn check(&self) -> Result<(), ParamError> {
        match &self.law {
            Chosen::Kernel(_) => Ok(()),
            Chosen::Ours(entry) => match entry.build {
                Build::Sender(build) => {
                    build(&self.settings, Setup::new(Bytes::new(1448), Seed(0).stream("check"))).map(drop)
                }
                Build::Hop(build) => build(&self.settings).map(drop),
                Build::Receiver(build) => build(&self.settings, SOME_RECEIVER).map(drop),
            },
        }
    }

    /// A congestion control that has seen nothing.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn sender(&self, setup: Setup) -> Result<Box<dyn SenderLaw>, BuildError> {
        match &self.law {
            Chosen::Kernel(name) => Err(BuildError::Kernel { name: name.clone() }),
            Chosen::Ours(Entry { build: Build::Sender(build), .. }) => Ok(build(&self.settings, setup)?),
            Chosen::Ours(entry) => Err(BuildError::Place { name: entry.name.to_owned() }),
        }
    }

    /// A law of a hop that has seen nothing.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn hop(&self) -> Result<Box<dyn HopLaw>, BuildError> {
        match &self.law {
            Chosen::Ours(Entry { build: Build::Hop(build), .. }) => Ok(build(&self.settings)?),
            _ => Err(BuildError::Place { name: self.name().to_owned() }),
        }
    }

    /// A law of a receiver that has seen nothing.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn receiver(&self, setup: ReceiverSetup) -> Result<Box<dyn ReceiverLaw>, BuildError> {
        match &self.law {
            Chosen::Ours(Entry { build: Build::Receiver(build), .. }) => Ok(build(&self.settings, setup)?),
            _ => Err(BuildError::Place { name: self.name().to_owned() }),
        }
    }
}

/// A receiver, for settings that are looked at and not run.
const SOME_RECEIVER: ReceiverSetup = ReceiverSetup {
    node: Node(1),
    slot: 0,
    start: Time::ZERO,
    end: Time::MAX,
    interval: Span::from_millis(500),
    idle_slots: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_is_found_by_its_name_and_no_other_is() {
        for entry in all() {
            assert_eq!(entry.place.law(entry.name), Some(entry));
            assert!(entry.aliases.iter().all(|alias| entry.place.law(alias) == Some(entry)));
            assert_eq!(entry.place.laws().filter(|other| other.name == entry.name).count(), 1, "{}", entry.name);
            assert!(entry.doc.ends_with('.') && !entry.doc.contains('\n'), "{}", entry.name);
        }
        assert_eq!(Place::Sender.law("cubik"), None);
        assert_eq!(Place::Proxy.law("cubic"), None);
    }

    #[test]
    fn every_default_reads_and_makes_a_law() {
        for entry in all() {
            for param in entry.table {
                let value = param.kind.parse(param.default);
                let value = value.unwrap_or_else(|error| panic!("{} {}: {error}", entry.name, param.key));
                assert_eq!(param.kind.parse(&value.to_string()), Ok(value), "{} {}", entry.name, param.key);
                assert!(!param.meaning().is_empty(), "{} {}", entry.name, param.key);
            }
            let choice = Choice::of(entry);
            let mut all = Settings::default();
            choice.values().into_iter().for_each(|(param, value)| all.set(param.key, value));
            assert_eq!((choice.check(), choice.with(all).check()), (Ok(()), Ok(())), "{}", entry.name);
        }
    }

    #[test]
    fn a_key_of_several_laws_at_a_place_is_of_one_kind() {
        for place in Place::ALL {
            for (param, laws) in place.parameters() {
                for law in laws {
                    assert_eq!(
                        law.param(param.key).map(|own| own.kind),
                        Some(param.kind),
                        "{} {}",
                        law.name,
                        param.key
                    );
                }
            }
        }
    }

    #[test]
    fn a_receiver_has_what_is_set_of_its_sender() {
        for entry in Place::Sender.laws() {
            let told = matches!(entry.transport, Transport::Atp | Transport::ReceiverFeedback);
            let mut settings = Settings::default();
            Choice::of(entry).values().into_iter().for_each(|(param, value)| settings.set(param.key, value));
            let receiver = Choice::of(entry).with(settings.clone()).of_receiver();
            let of = |choice: &Choice| (choice.name().to_owned(), choice.settings().clone(), choice.check());
            let want = told.then(|| (entry.name.to_owned(), settings, Ok(())));
            assert_eq!(receiver.as_ref().map(of), want, "{}", entry.name);
        }
    }

    #[test]
    fn the_kernels_congestion_controls_are_the_labs_alone() {
        let choice = Choice::named(Place::Sender, "kernel:dctcp").expect("a name");
        assert_eq!((choice.congestion(), choice.name(), choice.check()), ("dctcp", "kernel:dctcp", Ok(())));
        let setup = Setup::new(Bytes::new(1448), Seed(1).stream("law"));
        assert_eq!(choice.sender(setup).err(), Some(BuildError::Kernel { name: "kernel:dctcp".into() }));
        assert_eq!(Choice::named(Place::AccessPoint, "kernel:dctcp"), None);
        assert_eq!(Choice::named(Place::Sender, "reno").expect("ours").congestion(), "reno");
    }
}
