//! What the operator would create, with no cluster: the same look-ups and the same computation, over a set of objects.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_api::kinds::EmbeddingServerPhase;
use skep_converge::{Child, Kind};
use skep_world::{ReadError, Reader, Target, Watched, World};

use crate::{
    driver::{Blocked, Controller, Outcome},
    kinds::{Visit, each},
    settings::Settings,
    watched::{ConfigMaps, EmbeddingServers, Secrets, watches},
};

/// The children of one custom resource.
pub struct Rendered {
    /// The custom resource, as kind and name.
    pub owner: String,
    /// Where it is found among the objects.
    pub target: Arc<Target>,
    /// Its children, or why it has none.
    pub children: Result<Vec<Child>, Blocked>,
    /// What its status would say while nothing of it runs.
    pub status: Value,
}

/// An object that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A custom resource is not what its kind says.
    #[error("{kind} {name}: {error}")]
    Unreadable {
        /// The kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What is wrong with it, and where.
        error: String,
    },
}

/// Renders every custom resource among the objects; references are looked up among them too.
pub async fn render(objects: Vec<DynamicObject>, settings: Settings) -> Result<Vec<Rendered>, RenderError> {
    let mut renderers = Renderers::default();
    each(&Arc::new(settings), &mut renderers);
    let world = watches().offline();
    let mut targets = Vec::new();
    for mut object in objects {
        take_for_ready(&mut object);
        targets.extend(take_in(&world, &renderers, object)?);
    }
    let mut rendered = Vec::new();
    for target in targets {
        if let Some(renderer) = renderers.0.get(&target.kind) {
            let owner = format!("{} {}", target.kind.kind, target.name);
            let (children, status) = match renderer.computed(world.reader(target.clone())).await {
                Ok(Some(computed)) => (computed.children, computed.status.body()["status"].clone()),
                Ok(None) => (Ok(Vec::new()), Value::Null),
                Err(blocked) => (Err(blocked), Value::Null),
            };
            rendered.push(Rendered { owner, target, children, status });
        }
    }
    Ok(rendered)
}

/// Without a cluster no EmbeddingServer runs, and whoever waits for one would have nothing to show.
fn take_for_ready(object: &mut DynamicObject) {
    if object.types.as_ref().is_some_and(|types| types.kind == EmbeddingServers::KIND.kind) {
        object.data["status"] = json!({"phase": EmbeddingServerPhase::Ready, "readyReplicas": 1});
    }
}

/// What an object should have, and what would be said of it, without writing anything.
struct Computed {
    /// Its children, or why it has none.
    children: Result<Vec<Child>, Blocked>,
    /// What its status would be if it had them and nothing ran yet.
    status: Child,
}

/// What the object that the reader is for should have. Nothing if it is not there.
async fn computed<C: Controller>(controller: &C, reader: &mut Reader) -> Result<Option<Computed>, ReadError> {
    let name = reader.target().name.to_string();
    let entry = reader.get::<C::Resource>(&name);
    let Some(Ok(object)) = entry.map(|entry| entry.kept.object) else { return Ok(None) };
    let inputs = controller.resolve(object, reader).await?;
    let children = controller.desired(&inputs);
    let outcome = match &children {
        Ok(_) => Outcome::Converged(Vec::new()),
        Err(blocked) => Outcome::Blocked(blocked.clone()),
    };
    let status = controller.status(&inputs, &outcome, &Time(Timestamp::now()));
    Ok(Some(Computed { children, status }))
}

type Computing<'a> = Pin<Box<dyn Future<Output = Result<Option<Computed>, Blocked>> + Send + 'a>>;

/// A controller of any kind.
trait Renderer: Send + Sync {
    fn computed(&self, reader: Reader) -> Computing<'_>;

    /// Makes an object of the kind known, if it can be read.
    fn take_in(&self, world: &World, object: &DynamicObject) -> Result<(), RenderError>;
}

impl<C: Controller> Renderer for C {
    fn computed(&self, mut reader: Reader) -> Computing<'_> {
        Box::pin(async move { computed(self, &mut reader).await.map_err(Blocked::new) })
    }

    fn take_in(&self, world: &World, object: &DynamicObject) -> Result<(), RenderError> {
        let (kind, name) = (C::Resource::KIND.kind, object.metadata.name.clone().unwrap_or_default());
        if let Err(error) = C::Resource::keep(object).object {
            return Err(RenderError::Unreadable { kind, name, error });
        }
        world.observe::<C::Resource>(object);
        Ok(())
    }
}

/// One for each kind that can be rendered.
#[derive(Default)]
struct Renderers(HashMap<Kind, Box<dyn Renderer>>);

impl Visit for Renderers {
    fn visit<C: Controller>(&mut self, controller: C) {
        self.0.insert(C::Resource::KIND, Box::new(controller));
    }
}

/// Makes the object known, and says whether it is one to render.
fn take_in(
    world: &World,
    renderers: &Renderers,
    object: DynamicObject,
) -> Result<Option<Arc<Target>>, RenderError> {
    let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    let rendered = renderers.0.iter().find(|(rendered, _)| kind == rendered.kind);
    if let Some((_, renderer)) = rendered {
        renderer.take_in(world, &object)?;
    }
    let target = rendered.map(|(kind, _)| {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        let (namespace, name) = (text(&object.metadata.namespace), text(&object.metadata.name));
        Arc::new(Target { kind: *kind, namespace, name })
    });
    match kind.as_str() {
        "ConfigMap" => world.load::<ConfigMaps>(object),
        "Secret" => world.load::<Secrets>(object),
        _ => {}
    }
    Ok(target)
}
