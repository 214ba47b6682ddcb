//! Environment variables of a container.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};
use skep_api::{refs::SecretKeyRef, workload};

/// Variables in order, each name once: server-side apply rejects duplicate names, and a pod would use the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EnvList(Vec<EnvVar>);

impl EnvList {
    /// Sets a variable. It replaces any of the same name, and is appended.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        // A variable without a value has an empty one, and the API server drops empty values.
        let value = Some(value).filter(|value| !value.is_empty());
        self.push(EnvVar { name, value, value_from: None });
    }

    /// Sets a variable unless there is one of that name.
    pub(crate) fn set_default(&mut self, name: &str, value: &str) {
        if !self.0.iter().any(|variable| variable.name == name) {
            self.set(name, value);
        }
    }

    /// Sets a variable to the value of a Secret's key.
    pub(crate) fn set_from_secret(&mut self, name: impl Into<String>, secret: &SecretKeyRef) {
        let selector =
            SecretKeySelector { key: secret.key.clone(), name: secret.name.clone(), optional: None };
        self.set_from(
            name.into(),
            EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() },
        );
    }

    /// Sets a variable to one of the pod's own annotations.
    pub(crate) fn set_from_annotation(&mut self, name: &str, annotation: &str) {
        // Set explicitly: the API server fills the version in, and would attribute it to us.
        let field = ObjectFieldSelector {
            api_version: Some("v1".into()),
            field_path: format!("metadata.annotations['{annotation}']"),
        };
        self.set_from(name.into(), EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() });
    }

    /// Sets a user's variables.
    pub(crate) fn extend(&mut self, variables: &[workload::EnvVar]) {
        for variable in variables {
            self.set(&variable.name, &variable.value);
        }
    }

    /// Whether a variable's name has this prefix.
    pub(crate) fn any_starts_with(&self, prefix: &str) -> bool {
        self.0.iter().any(|variable| variable.name.starts_with(prefix))
    }

    pub(crate) fn into_vec(self) -> Vec<EnvVar> {
        self.0
    }

    fn set_from(&mut self, name: String, source: EnvVarSource) {
        self.push(EnvVar { name, value: None, value_from: Some(source) });
    }

    fn push(&mut self, variable: EnvVar) {
        self.0.retain(|other| other.name != variable.name);
        self.0.push(variable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_occurs_once_and_the_last_value_wins() {
        let mut env = EnvList::default();
        env.set("A", "1");
        env.set("B", "2");
        env.set("A", "3");
        env.set_default("B", "4");
        env.set_default("C", "5");
        let pairs: Vec<_> = env.into_vec().into_iter().map(|e| (e.name, e.value.unwrap())).collect();
        assert_eq!(pairs, [("B", "2"), ("A", "3"), ("C", "5")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
