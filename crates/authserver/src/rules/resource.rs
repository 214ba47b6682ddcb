//! Resource indicators (RFC 8707).

use super::{Parameters, Uri};

/// Why there is no audience.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TargetError(pub(crate) &'static str);

/// The resources of a request, which must be absolute, without a fragment, and known (RFC 8707, section 2).
pub(crate) fn resources(parameters: &Parameters, allowed: &[String]) -> Result<Vec<String>, TargetError> {
    let mut resources: Vec<String> = Vec::new();
    for resource in parameters.all("resource").filter(|resource| !resource.is_empty()) {
        match Uri::parse(resource) {
            None => return Err(TargetError("a resource must be an absolute URI")),
            Some(uri) if uri.has_fragment => return Err(TargetError("a resource must not have a fragment")),
            Some(_) if !allowed.iter().any(|known| known == resource) => {
                return Err(TargetError("the resource is not one that this server issues tokens for"));
            }
            Some(_) if !resources.iter().any(|known| known == resource) => {
                resources.push(resource.to_owned())
            }
            Some(_) => {}
        }
    }
    Ok(resources)
}

/// The audience of a token: the requested resource, which must be among the granted ones (RFC 8707, section 2.2), or the
/// only one that was granted. A token is for one resource.
pub(crate) fn target(requested: &[String], granted: &[String]) -> Result<String, TargetError> {
    match (requested, granted) {
        ([one], _) if granted.contains(one) => Ok(one.clone()),
        ([_], _) => Err(TargetError("the resource was not part of the authorization request")),
        ([], [one]) => Ok(one.clone()),
        ([], _) => Err(TargetError("the resource parameter is required")),
        _ => Err(TargetError("only one resource can be requested")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_one_resource_that_was_granted() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (one, both) = (texts(&["a:1"]), texts(&["a:1", "a:2"]));
        assert_eq!(target(&one, &both).unwrap(), "a:1");
        assert_eq!(target(&[], &one).unwrap(), "a:1");
        assert!(target(&[], &both).is_err() && target(&both, &both).is_err());
        assert!(target(&texts(&["a:2"]), &one).is_err());
        let requested = |text: &str| resources(&Parameters::parse(text.as_bytes()), &one);
        assert_eq!(requested("resource=a:1&resource=a:1").unwrap(), one);
        assert_eq!(requested("resource=").unwrap(), [""; 0]);
        for wrong in ["resource=a:1%23x", "resource=a:1/", "resource=A:1", "resource=1"] {
            assert!(requested(wrong).is_err(), "{wrong}");
        }
    }
}
