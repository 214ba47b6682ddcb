//! Doubtful settings of a configuration, which are served all the same.

use skep_api::{tools, vmcp::Config};
use skep_config::{FieldError, FieldPath};

pub(super) fn warnings(config: &Config) -> Vec<FieldError> {
    let mut warnings = skep_workflow::warnings(config);
    warnings.extend(same_names(config));
    warnings.extend(unknown_backends(config));
    warnings
}

/// Tools of one backend that would have one name.
fn same_names(config: &Config) -> Vec<FieldError> {
    let rules = config.aggregation.iter().flat_map(|aggregation| aggregation.tools.iter().enumerate());
    let warnings = rules.flat_map(|(index, rules)| {
        tools::same_names(&rules.overrides).map(move |(tool, name, other)| {
            let path = tools_path(index).join("overrides").key(tool);
            let message = format!(
                "{name:?} is the name of {other} as well, and only one is offered: give each another name"
            );
            FieldError::new(path.join("name"), message)
        })
    });
    warnings.collect()
}

/// Settings for backends that do not exist. A misspelled name would switch off a tool filter or a credential without a word.
/// Backends that are discovered are not known yet.
fn unknown_backends(config: &Config) -> Vec<FieldError> {
    if config.backends.is_empty() {
        return Vec::new();
    }
    let is_unknown = |name: &str| config.backends.iter().all(|backend| backend.name != name);
    let aggregation = config.aggregation.as_ref();
    let tools = aggregation.into_iter().flat_map(|aggregation| aggregation.tools.iter().enumerate());
    let tools = tools.map(|(index, rules)| (tools_path(index).join("workload"), &*rules.workload));
    let resolution = aggregation.and_then(|aggregation| aggregation.conflict_resolution_config.as_ref());
    let order = resolution.into_iter().flat_map(|resolution| resolution.priority_order.iter().enumerate());
    let order = order.map(|(index, name)| {
        let path = FieldPath::from("aggregation.conflictResolutionConfig.priorityOrder");
        (path.index(index), name.as_str())
    });
    let outgoing = config.outgoing_auth.iter().flat_map(|outgoing| outgoing.backends.keys());
    let outgoing = outgoing.map(|name| (FieldPath::from("outgoingAuth.backends").key(name), name.as_str()));
    let unknown = tools.chain(order).chain(outgoing).filter(|(_, name)| is_unknown(name));
    let warnings = unknown.map(|(path, name)| {
        FieldError::new(path, format!("no backend has the name {name:?}, so this has no effect"))
    });
    warnings.collect()
}

fn tools_path(index: usize) -> FieldPath {
    FieldPath::from("aggregation.tools").index(index)
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    #[test]
    fn settings_for_backends_that_do_not_exist_are_pointed_out() {
        let settings = |names: [&str; 3]| {
            let [rules, order, credentials] = names;
            let config = format!(
                "name: test\ngroupRef: test\nincomingAuth: {{type: anonymous}}\n\
                 outgoingAuth: {{source: inline, backends: {{{credentials}: {{type: unauthenticated}}}}}}\n\
                 aggregation:\n  conflictResolution: priority\n  conflictResolutionConfig: {{priorityOrder: [files, {order}]}}\n  \
                 tools: [{{workload: {rules}, filter: [read]}}]\n\
                 backends: [{{name: files, url: \"http://a\", transport: sse}}]\n"
            );
            let settings = Settings::parse(&config).unwrap_or_else(|errors| panic!("{errors:?}"));
            let warnings = settings.warnings().into_iter().map(|warning| warning.to_string());
            warnings.collect::<Vec<_>>()
        };
        assert!(settings(["files", "files", "files"]).is_empty());
        let warnings = settings(["fils", "flies", "file"]).join("\n");
        for field in ["tools[0].workload", "priorityOrder[1]", "outgoingAuth.backends"] {
            assert!(warnings.contains(field), "{field}: {warnings}");
        }
    }
}
