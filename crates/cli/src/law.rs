//! Flags of an agent's law: made from the registry, so that a parameter is a flag as soon as its law declares it.

use crate::flag;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use lasthop_experiment::agent;
use lasthop_laws::param::{Kind, Param, prose};
use lasthop_laws::{Choice, Entry, Place, Settings, Value};
use std::marker::PhantomData;

/// An agent with a choice of laws.
pub trait Agent: Clone + Send + Sync + 'static {
    /// Where its laws run.
    const PLACE: Place;
    /// The law if none is named.
    const DEFAULT: &str;

    /// What holds of a parameter that is not given, where that is not the law's own default.
    fn default(_key: &str) -> Option<Value> {
        None
    }

    /// The help of a flag, where that is not what the law says of the parameter.
    fn help(_key: &str) -> Option<&'static str> {
        None
    }
}

/// `lasthop ap`.
#[derive(Clone, Debug)]
pub struct AccessPoint;

impl Agent for AccessPoint {
    const PLACE: Place = Place::AccessPoint;
    const DEFAULT: &str = "oal";
}

/// `lasthop proxy`.
#[derive(Clone, Debug)]
pub struct Proxy;

impl Agent for Proxy {
    const PLACE: Place = Place::Proxy;
    const DEFAULT: &str = "aggregation";

    fn default(key: &str) -> Option<Value> {
        // Not the second that is the predecessor's own: stations that are told nothing report at this pace. Gains are a slot's.
        (key == "interval").then_some(Value::Time(lasthop_laws::aggregation::SLOT))
    }

    fn help(key: &str) -> Option<&'static str> {
        (key == "interval").then_some("Control interval; that of the stations must be equal")
    }
}

/// `lasthop host`.
#[derive(Clone, Debug)]
pub struct Terminal;

impl Agent for Terminal {
    const PLACE: Place = Place::Terminal;
    const DEFAULT: &str = "terminal";

    fn default(key: &str) -> Option<Value> {
        // Not the tables, which were made for one access point.
        (key == "rule").then_some(Value::Word("model"))
    }
}

/// The law that was chosen on a command line, and what was set of it.
#[derive(Clone, Debug)]
pub struct Law<A: Agent> {
    entry: &'static Entry,
    given: Vec<(&'static Param, Value)>,
    of: PhantomData<A>,
}

impl<A: Agent> Law<A> {
    /// The law with its parameters.
    pub fn choice(&self) -> Choice {
        let mut settings = Settings::default();
        for param in self.entry.table {
            A::default(param.key).into_iter().for_each(|value| settings.set(param.key, value));
        }
        self.given.iter().for_each(|(param, value)| settings.set(param.key, *value));
        Choice::of(self.entry).with(settings)
    }

    /// A flag that what runs does not look at would be a promise that nobody keeps. `instead`: the flag that something runs by in place
    /// of a law.
    pub fn refuse_idle_flags(&self, instead: Option<&str>) -> anyhow::Result<()> {
        let called = |law: &Entry| format!("--law {}", law.name);
        for (param, laws) in A::PLACE.parameters() {
            let given = self.given.iter().any(|(given, _)| given.key == param.key);
            if given && (instead.is_some() || !laws.contains(&self.entry)) {
                let laws: Vec<String> = laws.into_iter().map(called).collect();
                let of: Vec<&str> = laws.iter().map(String::as_str).collect();
                let runs = called(self.entry);
                return Err(flag::Wrong::idle(&flag_of::<A>(param), &of, instead.unwrap_or(&runs)));
            }
        }
        Ok(())
    }
}

fn flag_of<A: Agent>(param: &Param) -> String {
    format!("--{}", agent::flag(A::PLACE, param.key))
}

/// What a flag's value may be.
pub(crate) fn parser(kind: Kind) -> ValueParser {
    match kind {
        Kind::Word(words) => {
            let all = words.words.iter().map(|(word, doc)| PossibleValue::new(*word).help(short(&prose(doc))));
            PossibleValuesParser::new(all).try_map(move |word| kind.parse(&word)).into()
        }
        _ => ValueParser::new(move |text: &str| kind.parse(text)),
    }
}

/// What help calls such a value.
pub(crate) fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "TIME",
        Kind::Rate => "RATE",
        Kind::Bytes => "BYTES",
        Kind::Number => "X",
        Kind::Count => "N",
        Kind::Flag => "BOOL",
        Kind::Word(_) => "WORD",
    }
}

/// Help has no full stop at its end.
pub(crate) fn short(text: &str) -> String {
    text.trim_end_matches('.').to_owned()
}

/// What `--help` says of a parameter that these laws have.
fn help<A: Agent>(param: &Param, laws: &[&'static Entry]) -> String {
    let default = |law: &Entry| {
        let own = law.param(param.key).map_or(param.default, |own| own.default);
        A::default(param.key).map_or_else(|| own.to_owned(), |value| value.to_string())
    };
    let text = A::help(param.key).map_or_else(|| short(&param.meaning()), str::to_owned);
    // The help says so if all laws with this parameter must be asked for.
    let text = if laws.iter().all(|law| law.name != A::DEFAULT) { format!("{}: {text}", laws[0].name) } else { text };
    let first = default(laws[0]);
    let others = laws[1..].iter().filter(|law| default(law) != first);
    let others: String = others.map(|law| format!("; {}: {}", law.name, default(law))).collect();
    format!("{text} [default: {first}{others}]")
}

impl<A: Agent> Args for Law<A> {
    fn augment_args(command: Command) -> Command {
        let names = A::PLACE
            .laws()
            .map(|law| PossibleValue::new(law.name).aliases(law.aliases.iter().copied()).help(short(law.doc)));
        let law = Arg::new("law").long("law").value_name("NAME").default_value(A::DEFAULT);
        let law = law.value_parser(PossibleValuesParser::new(names)).help("What decides");
        A::PLACE.parameters().into_iter().fold(command.arg(law), |command, (param, laws)| {
            let value = value_name(param.kind);
            let arg = Arg::new(param.key)
                .long(agent::flag(A::PLACE, param.key))
                .value_name(value)
                .value_parser(parser(param.kind));
            command.arg(arg.allow_hyphen_values(!matches!(param.kind, Kind::Word(_))).help(help::<A>(param, &laws)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: Agent> FromArgMatches for Law<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Law<A>, clap::Error> {
        let name = matches.get_one::<String>("law").map_or(A::DEFAULT, String::as_str);
        let missing = || clap::Error::raw(clap::error::ErrorKind::InvalidValue, format!("there is no law `{name}`\n"));
        let entry = A::PLACE.law(name).ok_or_else(missing)?;
        let params = A::PLACE.parameters().into_iter().map(|(param, _)| param);
        let given = params.filter_map(|param| Some((param, *matches.get_one::<Value>(param.key)?)));
        Ok(Law { entry, given: given.collect(), of: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Law::from_arg_matches(matches)?;
        Ok(())
    }
}
