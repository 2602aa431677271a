//! Which controller a proxy runs, with its parameters.

use super::{LinearPi, Params, PiParams, Regulator};
use crate::{Choice, Decision, HopLaw, ParamError, Parameters};
use lasthop_signals::{FlowId, Signal};
use lasthop_units::{Span, Time};

/// A controller that can be built.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// The aggregation regulator.
    Aggregation(Params),
    /// Its predecessor.
    LinearPi(PiParams),
}

/// A controller.
#[derive(Clone, Debug)]
pub enum Controller {
    /// The aggregation regulator.
    Aggregation(Box<Regulator>),
    /// Its predecessor.
    LinearPi(LinearPi),
}

impl Control {
    /// The controller of a proxy's law; `None` if it is no controller of this family, or its settings make none.
    pub fn of(choice: &Choice) -> Option<Control> {
        match choice.name() {
            name if name == super::LAW.name => Params::with(choice.settings()).ok().map(Control::Aggregation),
            name if name == super::PREDECESSOR.name => PiParams::with(choice.settings()).ok().map(Control::LinearPi),
            _ => None,
        }
    }

    /// Checks that the parameters make a law.
    ///
    /// # Errors
    /// The first parameter that is out of bounds.
    pub fn validate(&self) -> Result<(), ParamError> {
        match self {
            Control::Aggregation(params) => params.validate(),
            Control::LinearPi(params) => params.validate(),
        }
    }

    /// The controller, which has seen nothing.
    ///
    /// # Errors
    /// Those of [`Control::validate`].
    pub fn build(&self) -> Result<Controller, ParamError> {
        Ok(match self {
            Control::Aggregation(params) => Controller::Aggregation(Box::new(Regulator::new(params.clone())?)),
            Control::LinearPi(params) => Controller::LinearPi(LinearPi::new(params.clone())?),
        })
    }

    /// Length of the stations' slots.
    pub fn interval(&self) -> Span {
        match self {
            Control::Aggregation(params) => params.interval,
            Control::LinearPi(params) => params.interval,
        }
    }
}

impl Controller {
    /// The regulator, if it is one: for plots.
    pub fn regulator(&self) -> Option<&Regulator> {
        match self {
            Controller::Aggregation(regulator) => Some(regulator),
            Controller::LinearPi(_) => None,
        }
    }
}

impl HopLaw for Controller {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match self {
            Controller::Aggregation(law) => law.sense(now, signal),
            Controller::LinearPi(law) => law.sense(now, signal),
        }
    }

    fn sense_all(&mut self, now: Time, signals: &[Signal]) {
        match self {
            Controller::Aggregation(law) => law.sense_all(now, signals),
            Controller::LinearPi(law) => law.sense_all(now, signals),
        }
    }

    fn decide(&self, now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        match self {
            Controller::Aggregation(law) => law.decide(now, each),
            Controller::LinearPi(law) => law.decide(now, each),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Controller::Aggregation(law) => law.name(),
            Controller::LinearPi(law) => law.name(),
        }
    }
}
