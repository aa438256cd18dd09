//! Rules on which crate may import which: domain ← engine ← http ← cli, and adapters see the domain only.
//!
//! Each wall of the house is a crate, so `Cargo.toml` is where it can fall. Normal and build dependencies are
//! judged, optional ones as well. Development dependencies are not: they never ship, and an adapter's tests
//! need the conformance suites of the testkit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use super::finding::{Finding, Rule};
use crate::Failure;

static DIRECTION: Rule = Rule {
    id: "import-direction",
    reason: "Imports run one way (domain, engine, http, cli), and adapters see the domain only: pass a port in.",
};

static NO_PLACE: Rule = Rule {
    id: "import-no-place",
    reason: "Every crate has a layer: add it to HOUSE in xtask/src/tidy/imports.rs, with its reason.",
};

static PURE_DOMAIN: Rule = Rule {
    id: "import-pure-domain",
    reason: "The domain decides without I/O, clock, randomness or runtime, so that a simulation can replay it.",
};

/// What a crate is in the house.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layer {
    Domain,
    Engine,
    /// What several adapters need to speak to a server, and no port.
    Wire,
    Adapter,
    Http,
    Testkit,
    /// Opens every adapter for end-to-end tests, and is imported by nobody but them.
    Ground,
    Cli,
    Tooling,
}

const HOUSE: &[(&str, Layer)] = &[
    ("onceward-domain", Layer::Domain),
    ("onceward", Layer::Engine),
    // By whom servers are judged under TLS: one answer for all adapters, or a certificate is good enough for one of them only.
    ("onceward-tls", Layer::Wire),
    ("onceward-sqlite", Layer::Adapter),
    ("onceward-postgres", Layer::Adapter),
    ("onceward-providers", Layer::Adapter),
    ("onceward-redis", Layer::Adapter),
    ("onceward-rocketmq", Layer::Adapter),
    ("onceward-http", Layer::Http),
    ("onceward-testkit", Layer::Testkit),
    ("onceward-ground", Layer::Ground),
    ("onceward-cli", Layer::Cli),
    ("xtask", Layer::Tooling),
];

impl Layer {
    fn of(name: &str) -> Option<Self> {
        HOUSE.iter().find(|(member, _)| *member == name).map(|(_, layer)| *layer)
    }

    /// The layers it may import.
    fn sees(self) -> &'static [Layer] {
        match self {
            Self::Domain => &[],
            Self::Engine | Self::Wire => &[Self::Domain],
            Self::Adapter => &[Self::Domain, Self::Wire],
            Self::Http | Self::Testkit => &[Self::Domain, Self::Engine],
            Self::Ground => &[Self::Domain, Self::Engine, Self::Adapter, Self::Testkit],
            // The one place that picks adapters. The testkit is in it because `torture` ships the simulator.
            Self::Cli => &[Self::Domain, Self::Engine, Self::Wire, Self::Adapter, Self::Http, Self::Testkit],
            // Reads the tables of the state machines to write the documentation.
            Self::Tooling => &[Self::Domain],
        }
    }
}

/// Runtimes, drivers, servers and sources of chance, by the names they are most likely to come in under.
const IMPURE: &[&str] = &[
    "async-std",
    "axum",
    "hyper",
    "rand",
    "redis",
    "reqwest",
    "rusqlite",
    "smol",
    "sqlx",
    "tokio",
    "tokio-postgres",
    "tonic",
];

/// The part of the dependency graph that the rules speak about.
pub(super) struct Graph {
    members: Vec<Member>,
}

struct Member {
    name: String,
    /// Path of its `Cargo.toml` from the root, and the text of it.
    manifest: String,
    manifest_text: String,
    /// Names of what it imports.
    imports: Vec<String>,
    /// Everything that it is built with, at any depth: the name, and the direct import it comes in through.
    closure: BTreeMap<String, String>,
}

pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    graph.members.iter().flat_map(|member| check_member(member, graph)).collect()
}

fn check_member(member: &Member, graph: &Graph) -> Vec<Finding> {
    let Some(layer) = Layer::of(&member.name) else {
        return vec![member.found(&NO_PLACE, &member.name, format!("crate `{}` is not known", member.name))];
    };
    let mut findings = Vec::new();
    for import in member.imports.iter().filter(|import| graph.has(import)) {
        let allowed = Layer::of(import).is_none_or(|imported| layer.sees().contains(&imported));
        if !allowed {
            let detail = format!("`{}` imports `{import}`", member.name);
            findings.push(member.found(&DIRECTION, import, detail));
        }
    }
    if layer == Layer::Domain {
        for (name, via) in member.closure.iter().filter(|(name, _)| IMPURE.contains(&name.as_str())) {
            let detail = format!("`{}` is built with `{name}`, through `{via}`", member.name);
            findings.push(member.found(&PURE_DOMAIN, via, detail));
        }
    }
    findings
}

impl Member {
    /// A finding at the line of the manifest that names the import.
    fn found(&self, rule: &'static Rule, import: &str, detail: String) -> Finding {
        let names_import = |line: &str| line.trim_start_matches(['"', '[']).contains(import);
        let line = self.manifest_text.lines().position(names_import).map_or(1, |index| index + 1);
        Finding { rule, path: self.manifest.clone(), line, detail }
    }
}

impl Graph {
    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    /// Asks cargo. The lock file must be current: a check never changes what it checks.
    pub(super) fn of_workspace(root: &Path) -> Result<Self, Failure> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .other_options(vec!["--locked".to_owned()])
            .exec()
            .map_err(|cause| format!("could not read the dependency graph: {cause}"))?;
        let mut members = Vec::new();
        for package in metadata.workspace_packages() {
            let manifest = package.manifest_path.as_std_path();
            let shown = manifest.strip_prefix(root).unwrap_or(manifest).to_string_lossy().into_owned();
            let shipped = |kind: DependencyKind| kind != DependencyKind::Development;
            let imports = package.dependencies.iter().filter(|import| shipped(import.kind));
            members.push(Member {
                name: package.name.to_string(),
                manifest_text: fs::read_to_string(manifest)
                    .map_err(|cause| format!("could not read {shown}: {cause}"))?,
                manifest: shown,
                imports: imports.map(|import| import.name.clone()).collect(),
                closure: closure(&metadata, &package.id),
            });
        }
        Ok(Self { members })
    }
}

/// Everything a package is built with. Cargo resolved it for the features in use.
fn closure(metadata: &Metadata, start: &PackageId) -> BTreeMap<String, String> {
    let nodes: BTreeMap<&PackageId, Vec<&PackageId>> = metadata
        .resolve
        .iter()
        .flat_map(|resolve| &resolve.nodes)
        .map(|node| {
            let shipped = node
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|info| info.kind != DependencyKind::Development));
            (&node.id, shipped.map(|dep| &dep.pkg).collect())
        })
        .collect();
    let names: BTreeMap<&PackageId, String> =
        metadata.packages.iter().map(|package| (&package.id, package.name.to_string())).collect();

    let mut found = BTreeMap::new();
    for direct in nodes.get(start).into_iter().flatten() {
        let via = names.get(direct).cloned().unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut open = vec![*direct];
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                let name = names.get(id).cloned().unwrap_or_default();
                found.entry(name).or_insert_with(|| via.clone());
                open.extend(nodes.get(id).into_iter().flatten());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    //! Edges that must fall and edges that must stand, on graphs made by hand, then the graph that is there.

    use super::*;

    fn member(name: &str, imports: &[&str]) -> Member {
        let lines: String = imports.iter().map(|import| format!("{import} = \"1\"\n")).collect();
        Member {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            manifest_text: format!("[dependencies]\n{lines}"),
            imports: imports.iter().map(|&import| import.to_owned()).collect(),
            closure: imports.iter().map(|&import| (import.to_owned(), import.to_owned())).collect(),
        }
    }

    /// The house as it should be, with the imports of one crate replaced.
    fn ids_when(name: &str, imports: &[&str]) -> Vec<&'static str> {
        let mut members: Vec<Member> = HOUSE.iter().map(|(house, _)| member(house, &[])).collect();
        members.retain(|member| member.name != name);
        members.push(member(name, imports));
        check(&Graph { members }).iter().map(|finding| finding.rule.id).collect()
    }

    #[test]
    fn the_edges_of_the_design_stand() {
        for (name, imports) in [
            ("onceward", &["onceward-domain", "tokio"][..]),
            ("onceward-sqlite", &["onceward-domain", "rusqlite"]),
            ("onceward-redis", &["onceward-domain", "onceward-tls"]),
            ("onceward-http", &["onceward-domain", "onceward", "axum"]),
            ("onceward-testkit", &["onceward-domain", "onceward", "rand"]),
            ("onceward-cli", &["onceward-http", "onceward-sqlite", "onceward-testkit"]),
            ("xtask", &["onceward-domain"]),
        ] {
            assert_eq!(ids_when(name, imports), [""; 0], "{name} imports {imports:?}");
        }
    }

    #[test]
    fn every_edge_against_the_direction_falls() {
        for (name, import) in [
            ("onceward-domain", "onceward"),
            ("onceward", "onceward-http"),
            ("onceward", "onceward-sqlite"),
            ("onceward", "onceward-testkit"),
            ("onceward-sqlite", "onceward"),
            ("onceward-tls", "onceward-redis"),
            ("onceward-http", "onceward-tls"),
            ("onceward-sqlite", "onceward-testkit"),
            ("onceward-http", "onceward-sqlite"),
            ("onceward-http", "onceward-cli"),
            ("onceward-testkit", "onceward-sqlite"),
            ("onceward-cli", "xtask"),
        ] {
            assert_eq!(ids_when(name, &[import]), ["import-direction"], "{name} imports {import}");
        }
    }

    #[test]
    fn adapters_never_see_each_other() {
        assert!(!Layer::Adapter.sees().contains(&Layer::Adapter));
    }

    #[test]
    fn a_crate_without_a_place_is_reported() {
        assert_eq!(ids_when("onceward-extra", &["onceward-domain"]), ["import-no-place"]);
    }

    #[test]
    fn the_domain_stays_pure_at_any_depth() {
        for import in IMPURE {
            assert_eq!(ids_when("onceward-domain", &[import]), ["import-pure-domain"], "{import}");
        }
        let mut deep = member("onceward-domain", &["serde", "innocent"]);
        deep.closure.insert("tokio".to_owned(), "innocent".to_owned());
        let findings = check(&Graph { members: vec![deep] });
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3, "the line of the import that brings it in");
    }

    #[test]
    fn the_real_graph_is_read() -> Result<(), Failure> {
        let graph = Graph::of_workspace(&crate::workspace::root())?;
        for (name, _) in HOUSE {
            assert!(graph.has(name), "{name} is in the table and not in the workspace");
        }
        let http = graph.members.iter().find(|member| member.name == "onceward-http");
        assert!(http.is_some_and(|http| http.closure.contains_key("tokio")));
        Ok(())
    }
}
