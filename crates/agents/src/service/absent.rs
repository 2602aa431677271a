//! Agents of a build without eBPF: they say what is missing.

/// Declares an agent that is never there: a type with `open`, which checks the configuration and refuses, and `run`.
macro_rules! absent {
    ($agent:ident, [$config:ty $(, $further:ty)?], $summary:ty, $error:ty) => {
        /// Never there: this build has no eBPF programs.
        pub struct $agent(std::convert::Infallible);

        impl $agent {
            /// Looks at the configuration, and refuses.
            ///
            /// # Errors
            /// Always: [`crate::service::Error::NotBuilt`], if the configuration is right.
            pub fn open(config: &$config $(, _: $further)?) -> Result<$agent, $error> {
                config.validate()?;
                Err(crate::service::Error::NotBuilt.into())
            }

            /// Never called.
            ///
            /// # Errors
            /// None.
            pub fn run(self, _: &crate::service::Stop) -> Result<$summary, $error> {
                match self.0 {}
            }
        }
    };
}
pub(crate) use absent;
