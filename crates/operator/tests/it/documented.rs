//! What docs/troubleshooting.md says that the operator can say: conditions with their reasons, and events.

use std::{collections::BTreeSet, fs, path::Path};

use regex::Regex;
use skep_api::kinds::EmbeddingServerPhase;

/// Words in the code that look like reasons and are none: kinds, words of Kubernetes and Go, and what was being done when
/// an event was told.
const OTHER_WORDS: &str = "
    ALL Apply ConfigMap ContainerTerminated CrashLoopBackOff CreateContainerConfigError CreateContainerError
    CreateDeployment CreateHMACSecret CreateService Delete Deployment EmbeddingServer ErrImagePull False
    Filesystem GenerateHMACSecret IfNotPresent ImagePullBackOff InvalidImageName JSON MCPAuthzConfig
    MCPExternalAuthConfig MCPGroup MCPOIDCConfig MCPTelemetryConfig MCPToolConfig MCPWebhookConfig Migrate
    Opaque PGPASSFILE PatchStoredVersions PodFailed PodScheduled Reconcile Ref Refs ReplicaFailure
    ResolveEmbeddingService ResolvePrimaryUpstreamProvider ResolveReferences RestoreCRs Role RoleBinding Running
    RuntimeDefault Secret Service ServiceAccount StatefulSet Succeeded TCP Time True Unschedulable
    UpdateDeployment UpdateStatefulSet Validate ValidateAuthzConfigMap ValidateEmbeddingServerRef
    ValidateModelCache ValidatePodTemplateSpec ValidatePolicies ValidateSecrets ValidateSpec
    VirtualMCPCompositeToolDefinition
";

/// What the document says.
pub(crate) struct Documented {
    /// Types of conditions, each with a reason that it can have.
    pub(crate) conditions: BTreeSet<(String, String)>,
    /// Reasons of events.
    pub(crate) events: BTreeSet<String>,
}

impl Documented {
    /// Every heading of a condition names its type, and every row of the table below it a reason.
    pub(crate) fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
        let text = fs::read_to_string(file).unwrap();
        let mut documented = Self { conditions: BTreeSet::new(), events: BTreeSet::new() };
        let (mut section, mut types) = (String::new(), Vec::new());
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = heading.into();
            } else if line.starts_with("### ") {
                types = words(line);
            } else if line.starts_with("| `") {
                let reasons = words(line.split(" | ").next().unwrap());
                match section.as_str() {
                    "Conditions" => {
                        documented.conditions.extend(types.iter().flat_map(|type_| {
                            reasons.iter().map(move |reason| (type_.clone(), reason.clone()))
                        }))
                    }
                    "Events" => documented.events.extend(reasons),
                    _ => {}
                }
            }
        }
        documented
    }

    fn all_words(&self) -> BTreeSet<String> {
        let conditions = self.conditions.iter().flat_map(|(type_, reason)| [type_.clone(), reason.clone()]);
        conditions.chain(self.events.iter().cloned()).collect()
    }
}

/// What stands in backticks. What comes after a dash is a name that users choose.
fn words(line: &str) -> Vec<String> {
    let quoted = Regex::new("`([A-Za-z0-9]+)(-NAME)?`").unwrap();
    quoted.captures_iter(line).map(|found| found[1].to_owned()).collect()
}

/// Every text in the operator's code that has the form of a reason. Tests have words of their own.
fn words_of_code() -> BTreeSet<String> {
    let word = Regex::new(r#""([A-Z][A-Za-z0-9]*)("|-\{)"#).unwrap();
    let mut found = BTreeSet::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            found.extend(word.captures_iter(line).map(|found| found[1].to_owned()));
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_test = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["tests.rs", "samples.rs", "compat.rs"].contains(&&*name)
    };
    let nested = entries
        .filter(|path| !is_test(path))
        .map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    nested.flatten().collect()
}

#[test]
fn every_reason_in_the_code_is_in_the_document_and_the_other_way_round() {
    let mut said = words_of_code();
    let others: BTreeSet<String> = OTHER_WORDS.split_whitespace().map(Into::into).collect();
    let gone: Vec<_> = others.difference(&said).collect();
    assert!(gone.is_empty(), "OTHER_WORDS has words that the code does not: {gone:?}");
    said.retain(|word| !others.contains(word));
    // An EmbeddingServer that is not ready gives its phase as the reason.
    use EmbeddingServerPhase::{Downloading, Failed, Pending};
    said.extend([Downloading, Failed, Pending].map(|phase| phase.as_str().to_owned()));
    let documented = Documented::read().all_words();
    let (missing, gone) =
        (said.difference(&documented).collect::<Vec<_>>(), documented.difference(&said).collect::<Vec<_>>());
    assert!(missing.is_empty(), "docs/troubleshooting.md does not have {missing:?}");
    assert!(gone.is_empty(), "docs/troubleshooting.md has what the operator never says: {gone:?}");
}
