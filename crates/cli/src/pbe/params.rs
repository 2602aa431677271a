//! Flags of either end for the law's parameters: made from its table, each at the end that looks at it.

use crate::law::{parser, short, value_name};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use lasthop_laws::param::{Kind, Param};
use lasthop_laws::pbe::{OF_SENDERS, RECEIVER};
use lasthop_laws::{Settings, Value};

/// What was set of a law at the sender (`true`) or at the receiver.
#[derive(Clone, Debug)]
pub struct Params<const SENDER: bool>(pub Settings);

impl<const SENDER: bool> Params<SENDER> {
    fn table() -> impl Iterator<Item = &'static Param> {
        RECEIVER.table.iter().filter(|param| OF_SENDERS.contains(&param.key) == SENDER)
    }
}

impl<const SENDER: bool> Args for Params<SENDER> {
    fn augment_args(command: Command) -> Command {
        Params::<SENDER>::table().fold(command, |command, param| {
            let arg = Arg::new(param.key).long(param.key).value_name(value_name(param.kind));
            let arg = arg.value_parser(parser(param.kind)).allow_hyphen_values(!matches!(param.kind, Kind::Word(_)));
            command.arg(arg.help(format!("{} [default: {}]", short(&param.meaning()), param.default)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SENDER: bool> FromArgMatches for Params<SENDER> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Settings::default();
        let given = Params::<SENDER>::table().filter_map(|param| Some((param, *matches.get_one::<Value>(param.key)?)));
        given.for_each(|(param, value)| settings.set(param.key, value));
        Ok(Params(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
