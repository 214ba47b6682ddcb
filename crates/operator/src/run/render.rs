//! What the operator would create, without a cluster: the same steps, over a set of objects.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_api::{for_each_kind, kinds::*};
use skep_config::{FieldError, FieldPath};
use skep_converge::{Child, Kind};
use skep_world::{Reader, Target, Watched, World};

use super::registry::watches;
use crate::{
    reconcile::{Computed, Controller, Outcome, Problem},
    resources::{ConfigMaps, Custom, Keys, Secrets, Texts, kind_of},
    settings::Settings,
};

/// The children of one custom resource.
pub struct Rendered {
    /// The custom resource, as kind and name.
    pub owner: String,
    /// The object that was rendered.
    pub target: Arc<Target>,
    /// Its children, or everything that keeps it from having them.
    pub children: Result<Vec<Child>, Vec<Problem>>,
    /// Its status while nothing runs yet.
    pub status: Value,
}

/// An object that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A custom resource does not match the schema of its kind.
    #[error("{kind} {name}: {field}: {error}")]
    Unreadable {
        /// The kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The field, from the root of the object.
        field: FieldPath,
        /// What is wrong with it.
        error: String,
    },
}

/// Renders every custom resource among the objects. References are resolved among them, too.
pub async fn render(objects: Vec<DynamicObject>, settings: Settings) -> Result<Vec<Rendered>, RenderError> {
    let renderers = renderers();
    let settings = Arc::new(settings);
    let world = watches().offline();
    let mut targets = Vec::new();
    for mut object in objects {
        assume_ready(&mut object);
        targets.extend(load(&world, &renderers, object)?);
    }
    let mut rendered = Vec::new();
    for target in targets {
        if let Some(renderer) = renderers.get(&target.kind) {
            let owner = format!("{} {}", target.kind.kind, target.name);
            let (children, status) = renderer.render(world.reader(target.clone()), settings.clone()).await;
            rendered.push(Rendered { owner, target, children, status });
        }
    }
    Ok(rendered)
}

/// Without a cluster no EmbeddingServer runs, and an object that waits for one would have nothing to show.
fn assume_ready(object: &mut DynamicObject) {
    if object.types.as_ref().is_some_and(|types| types.kind == kind_of::<EmbeddingServer>().kind) {
        object.data["status"] = json!({"phase": EmbeddingServerPhase::Ready, "readyReplicas": 1});
    }
}

type Rendering<'a> = Pin<Box<dyn Future<Output = (Result<Vec<Child>, Vec<Problem>>, Value)> + Send + 'a>>;

/// Renders objects of one kind.
trait Renderer {
    fn render(&self, reader: Reader, settings: Arc<Settings>) -> Rendering<'_>;

    /// Adds an object of the kind, if it can be parsed.
    fn load(&self, world: &World, object: &DynamicObject) -> Result<(), RenderError>;
}

impl<K: Controller> Renderer for Custom<K> {
    fn render(&self, mut reader: Reader, settings: Arc<Settings>) -> Rendering<'_> {
        Box::pin(async move {
            let name = reader.target().name.to_string();
            let entry = reader.get::<Custom<K>>(&name);
            let Some(Ok(object)) = entry.map(|entry| entry.cached.with_status()) else {
                return (Ok(Vec::new()), Value::Null);
            };
            match Computed::<K>::new(object, &settings, &mut reader).await {
                Ok(computed) => children_and_status(computed),
                Err(error) => (Err(vec![Problem::of("", error.to_string())]), Value::Null),
            }
        })
    }

    fn load(&self, world: &World, object: &DynamicObject) -> Result<(), RenderError> {
        if let Err(FieldError { field, message: error }) = Self::project(object).object {
            let name = object.metadata.name.clone().unwrap_or_default();
            return Err(RenderError::Unreadable { kind: kind_of::<K>().kind, name, field, error });
        }
        world.observe::<Self>(object);
        Ok(())
    }
}

fn children_and_status<K: Controller>(computed: Computed<K>) -> (Result<Vec<Child>, Vec<Problem>>, Value) {
    let outcome = match &computed.children {
        Ok(_) => Outcome::Converged(Vec::new()),
        Err(problem) => Outcome::Blocked(problem.clone()),
    };
    let (status, _) = computed.status(&outcome, Vec::new(), &Time(Timestamp::now()));
    let children = computed.children.map_err(|problem| match computed.validation.problems {
        problems if problems.is_empty() => vec![problem],
        problems => problems,
    });
    (children, status)
}

fn renderers() -> HashMap<Kind, Box<dyn Renderer + Send + Sync>> {
    let mut renderers: HashMap<Kind, Box<dyn Renderer + Send + Sync>> = HashMap::new();
    macro_rules! add {
        ($($kind:ident),+) => { $( renderers.insert(kind_of::<$kind>(), Box::new(Custom::<$kind>::default())); )+ };
    }
    for_each_kind!(add);
    renderers
}

/// Adds an object, and returns it as a target if it is to be rendered.
fn load(
    world: &World,
    renderers: &HashMap<Kind, Box<dyn Renderer + Send + Sync>>,
    object: DynamicObject,
) -> Result<Option<Arc<Target>>, RenderError> {
    let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    let renderer = renderers.iter().find(|(rendered, _)| kind == rendered.kind);
    if let Some((_, renderer)) = renderer {
        renderer.load(world, &object)?;
    }
    let target = renderer.map(|(kind, _)| {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        let (namespace, name) = (text(&object.metadata.namespace), text(&object.metadata.name));
        Arc::new(Target { kind: *kind, namespace, name })
    });
    match kind.as_str() {
        "ConfigMap" => {
            world.load::<Keys<ConfigMaps>>(object.clone());
            world.load::<Texts>(object);
        }
        "Secret" => world.load::<Keys<Secrets>>(object),
        _ => {}
    }
    Ok(target)
}
