//! What the operator would create, with no cluster: the same look-ups and the same computation, over a set of objects.

use std::sync::Arc;

use kube::core::DynamicObject;
use skep_converge::Child;
use skep_world::{Target, Watched, World};

use crate::{
    driver::{Blocked, Controller, desired},
    kinds::McpServers,
    settings::Settings,
    watched::{
        AuthzConfigs, ConfigMaps, CustomResource, ExternalAuthConfigs, Groups, OidcConfigs, Secrets, Servers,
        TelemetryConfigs, ToolConfigs, WebhookConfigs, watches,
    },
};

/// The children of one custom resource.
pub struct Rendered {
    /// The custom resource, as kind and name.
    pub owner: String,
    /// Its children, or why it has none.
    pub children: Result<Vec<Child>, Blocked>,
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
    let world = watches().offline();
    let mut targets = Vec::new();
    for object in objects {
        targets.extend(take_in(&world, object)?);
    }
    let servers = McpServers::new(Arc::new(settings));
    let mut rendered = Vec::new();
    for target in targets {
        rendered.push(children(&servers, &world, target).await);
    }
    Ok(rendered)
}

async fn children<C: Controller>(controller: &C, world: &Arc<World>, target: Arc<Target>) -> Rendered {
    let owner = format!("{} {}", target.kind.kind, target.name);
    let children = desired(controller, &mut world.reader(target)).await;
    Rendered { owner, children: children.unwrap_or_else(|error| Err(Blocked::new(error))) }
}

/// Makes the object known, and says whether it is one to render.
fn take_in(world: &World, object: DynamicObject) -> Result<Option<Arc<Target>>, RenderError> {
    let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    macro_rules! known {
        ($($watched:ty),+) => {
            $( if kind == <$watched>::KIND.kind {
                readable::<$watched>(&object)?;
                world.observe::<$watched>(&object);
            } )+
        };
    }
    known!(
        Servers,
        Groups,
        ToolConfigs,
        ExternalAuthConfigs,
        OidcConfigs,
        AuthzConfigs,
        TelemetryConfigs,
        WebhookConfigs
    );
    let target = (kind == Servers::KIND.kind).then(|| {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        let (namespace, name) = (text(&object.metadata.namespace), text(&object.metadata.name));
        Arc::new(Target { kind: Servers::KIND, namespace, name })
    });
    match kind.as_str() {
        "ConfigMap" => world.load::<ConfigMaps>(object),
        "Secret" => world.load::<Secrets>(object),
        _ => {}
    }
    Ok(target)
}

fn readable<W: CustomResource>(object: &DynamicObject) -> Result<(), RenderError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    match W::keep(object).object {
        Ok(_) => Ok(()),
        Err(error) => Err(RenderError::Unreadable { kind: W::KIND.kind, name, error }),
    }
}
