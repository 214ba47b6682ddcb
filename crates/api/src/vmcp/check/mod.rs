//! What must be right in a configuration beside its types: what the process would reject at its start, so that the operator
//! can report it before. Nothing here does I/O.

mod aggregation;
mod auth;
mod backends;
mod headers;
mod operational;
mod sections;

use skep_config::FieldError;

use super::Config;

/// All errors of a configuration.
pub fn errors(config: &Config) -> Vec<FieldError> {
    let within = |errors: Vec<FieldError>, section: &'static str| {
        errors.into_iter().map(move |error| error.within(section))
    };
    let mut errors = required(config);
    errors.extend(backends::errors(&config.backends));
    errors.extend(config.incoming_auth.iter().flat_map(|auth| within(auth::incoming(auth), "incomingAuth")));
    errors.extend(config.outgoing_auth.iter().flat_map(|auth| within(auth::outgoing(auth), "outgoingAuth")));
    errors.extend(
        config
            .aggregation
            .iter()
            .flat_map(|aggregation| within(aggregation::errors(aggregation), "aggregation")),
    );
    errors.extend(
        config
            .operational
            .iter()
            .flat_map(|operational| within(operational::errors(operational), "operational")),
    );
    errors.extend(sections::errors(config));
    errors.extend(headers::errors(&config.passthrough_headers));
    errors
}

fn required(config: &Config) -> Vec<FieldError> {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let required = [
        ("name", is_set(&config.name)),
        ("groupRef", is_set(&config.group_ref)),
        ("incomingAuth", config.incoming_auth.is_some()),
        ("outgoingAuth", config.outgoing_auth.is_some()),
        ("aggregation", config.aggregation.is_some()),
    ];
    required.into_iter().filter(|(_, is_set)| !is_set).map(|(field, _)| missing(field)).collect()
}

fn missing(field: &'static str) -> FieldError {
    FieldError::new(field, "is required")
}
