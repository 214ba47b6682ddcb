//! skep
fn main() -> anyhow::Result<()> {
    for c in skep_api::crd::crds()? {
        println!("{}", serde_json::to_string_pretty(&skep_api::crd::to_json(&c)?)?);
    }
    Ok(())
}
