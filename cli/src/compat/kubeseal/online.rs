//! The modes that need a cluster: `--fetch-cert`, `--validate` and `--re-encrypt`.

use lacre_crypto::object::SealedSecret;
use serde_json::Value;

use super::Call;
use crate::cluster::Cluster;
use crate::cluster::controller::Controller;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::sealed_secrets::manifest::Manifest;
use crate::sealed_secrets::merge::{self, Change};
use crate::sealed_secrets::{certificate, unsealed};

/// What of a living object's metadata says nothing about its manifest.
const LIVE_FIELDS: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Prints the certificate that is sealed for.
pub(super) fn fetch_certificate(call: &Call) -> Result<(), CommandError> {
    call.deliver(&certificate_text(call)?)
}

/// The text of the certificate to seal for: of the file or URL that was named, else of the cluster.
pub(super) fn certificate_text(call: &Call) -> Result<String, CommandError> {
    match call.line.text("cert") {
        Some(source) => certificate::read(&source),
        None => {
            let cluster = Cluster::reach(&call.cluster()?)?;
            controller(call, &cluster)?.certificate()
        }
    }
}

/// Has the controller tell whether it can open each SealedSecret that came in.
pub(super) fn validate(call: &Call) -> Result<(), CommandError> {
    call.leave_output_alone("--validate");
    let input = call.input()?;
    let objects = call.objects(&input.name, &input.content)?;
    for object in &objects {
        unsealed::read(object)?;
    }
    let cluster = Cluster::reach(&call.cluster()?)?;
    let controller = controller(call, &cluster)?;
    let mut refused = Vec::new();
    for object in &objects {
        if !controller.verify(&object.object)? {
            refused.push(object.name().unwrap_or_default());
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let names = refused.join(", ");
    Err(CommandError::new(Kind::NoKey, format!("unable to decrypt sealed secret: {names}")).hint(
        "it was sealed for another cluster, namespace, name or scope; with the keys at hand `lacre kube validate` says which",
    ))
}

/// Has the controller seal the items of each SealedSecret for its newest key, and takes from its answer nothing but the
/// items. A file that was named is changed in place, unless the result goes to another one.
pub(super) fn re_encrypt(call: &Call) -> Result<(), CommandError> {
    let form = call.form()?;
    let input = call.input()?;
    let objects = call.objects(&input.name, &input.content)?;
    let sealed = objects.iter().map(unsealed::read).collect::<Result<Vec<_>, _>>()?;
    let cluster = Cluster::reach(&call.cluster()?)?;
    let controller = controller(call, &cluster)?;
    let mut rotated = Vec::new();
    for (object, sealed) in objects.iter().zip(&sealed) {
        let answer = controller.rotate(&object.object)?.ok_or_else(|| {
            object
                .refuse("unable to rotate secret")
                .hint("the controller cannot open it: see `kubeseal --validate`")
        })?;
        rotated.push(items(object, sealed, &answer)?);
    }
    let in_place = call.output_path().is_none_or(|output| input.path.as_ref() == Some(&output));
    if in_place && input.path.is_some() {
        let changes: Vec<_> = objects.iter().zip(rotated).collect();
        let text = merge::apply(&input.name.display().to_string(), &input.content, &changes)?;
        return files::replace(&input, text.as_bytes(), Privacy::Shared);
    }
    let printed = objects.iter().zip(&rotated).map(|(object, changes)| {
        let mut whole = object.object.clone();
        changes.iter().for_each(|change| change.make(&mut whole));
        form.print(&without_life(whole))
    });
    call.deliver(&printed.collect::<String>())
}

/// The new items of `object`: every one that it has, and no other.
fn items(object: &Manifest, sealed: &SealedSecret, answer: &Value) -> Result<Vec<Change>, CommandError> {
    if sealed.legacy_data.is_some() {
        return Err(object
            .refuse("is of the first version, whose single blob cannot be replaced item by item")
            .hint("open it with `--recovery-unseal`, and seal the Secret again"));
    }
    let mut changes = Vec::new();
    for name in sealed.items.keys() {
        let item = answer.pointer("/spec/encryptedData").and_then(|items| items.get(name));
        let item = item.and_then(Value::as_str).filter(|item| !item.is_empty()).ok_or_else(|| {
            object
                .refuse(format!("the controller's answer has no item {name}"))
                .hint("see whether it is the controller that `--controller-name` names")
        })?;
        changes.push(Change::below(&["spec", "encryptedData"], name, item.into()));
    }
    Ok(changes)
}

/// The object as a manifest, without what a cluster adds to it.
fn without_life(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !LIVE_FIELDS.contains(&field.as_str()));
    }
    object
}

fn controller<'c>(call: &Call, cluster: &'c Cluster) -> Result<Controller<'c>, CommandError> {
    let [namespace, name] =
        ["controller-namespace", "controller-name"].map(|flag| call.line.text_or_default(flag));
    Controller::find(cluster, &namespace, &name)
}
