//! The tenant of the credentials and its projects, each of which lies in one region.

use std::collections::BTreeMap;

use super::Settings;
use super::client::{Api, is_id};
use super::wire;
use super::wire::ProjectState;
use crate::cloud::{ErrorKind, Reached, Result};
use crate::model::words::one_line;

/// What is asked where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The tenant's id.
    pub(crate) tenant: String,
    /// The projects that machines are made in: those that the owner named, else one of each region.
    pub(crate) projects: Vec<Project>,
    /// The projects that are in use and lie in a region.
    pub(crate) open: Vec<Project>,
    /// All projects: a machine may lie in any of them.
    pub(crate) all: Vec<Project>,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its id, `project-...`.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Its region; empty if none is told.
    pub(crate) region: String,
}

/// Asks for tenant and projects.
pub(crate) async fn ask(api: &Api, settings: &Settings) -> Result<Scope> {
    let tenant = tenant(api, settings).await?;
    let listed = api.projects(&tenant).await?;
    let known: Vec<(Project, bool)> = listed.iter().filter_map(read).collect();
    let open: Vec<Project> =
        known.iter().filter(|(_, is_open)| *is_open).map(|(project, _)| project.clone()).collect();
    let all = known.into_iter().map(|(project, _)| project).collect();
    let (projects, notes) = choose(&open, &settings.projects);
    if projects.is_empty() && !settings.projects.is_empty() {
        let asked = api.asked("listing projects");
        let message = notes.join("; ");
        return Err(asked.error(ErrorKind::Rejected, message, Reached::No));
    }
    Ok(Scope { tenant, projects, open, all, notes })
}

/// Returns the tenant: the one that was named, else the only one.
async fn tenant(api: &Api, settings: &Settings) -> Result<String> {
    if let Some(tenant) = &settings.tenant {
        return Ok(tenant.clone());
    }
    let asked = api.asked("listing tenants");
    let listed = api.tenants().await?;
    let ids: Vec<&str> = listed
        .iter()
        .filter_map(|tenant| tenant.metadata.as_ref())
        .map(|metadata| metadata.id.as_str())
        .filter(|id| is_id(id))
        .collect();
    let many = match ids[..] {
        [only] => return Ok(only.to_owned()),
        [] => "these credentials see no tenant".to_owned(),
        _ => format!("these credentials see {} tenants: {}", ids.len(), one_line(&ids.join(", "), 200)),
    };
    let mut error = asked.error(ErrorKind::Rejected, many, Reached::No);
    error.hint = Some(
        "name one: `tenant = \"tenant-...\"` under [nebius] in the config file, or NEBIUS_TENANT_ID"
            .to_owned(),
    );
    Err(error)
}

/// Returns a project, and whether machines can be made in it: it lies in a region and is not being closed. None without a
/// usable id.
fn read(project: &wire::Project) -> Option<(Project, bool)> {
    let metadata = project.metadata.as_ref().filter(|metadata| is_id(&metadata.id))?;
    let region = project.spec.as_ref().map(|spec| spec.region.trim()).filter(|region| is_id(region));
    let state = project.status.as_ref().map(|status| status.project_state()).unwrap_or_default();
    let closed = [ProjectState::Purging, ProjectState::Parking, ProjectState::Parked];
    let is_open = region.is_some() && !closed.contains(&state);
    let read = Project {
        id: metadata.id.clone(),
        name: one_line(&metadata.name, 60),
        region: region.unwrap_or_default().to_owned(),
    };
    Some((read, is_open))
}

/// Chooses the projects that machines are made in: those that were named; else of each region the only one, else the only one
/// whose name begins with `default`, as Nebius calls those that it makes itself.
fn choose(all: &[Project], named: &[String]) -> (Vec<Project>, Vec<String>) {
    let mut regions: BTreeMap<&str, Vec<&Project>> = BTreeMap::new();
    let mut notes = Vec::new();
    for name in named {
        let is_it = |project: &&Project| project.id == *name || project.name == *name;
        match all.iter().find(is_it) {
            Some(project) => regions.entry(&project.region).or_default().push(project),
            None => notes.push(format!("there is no project `{}` in use in the tenant", one_line(name, 60))),
        }
    }
    if named.is_empty() {
        for project in all {
            regions.entry(&project.region).or_default().push(project);
        }
    }
    let mut chosen = Vec::new();
    for (region, projects) in regions {
        let default: Vec<&&Project> =
            projects.iter().filter(|project| project.name.starts_with("default")).collect();
        match (projects.as_slice(), default.as_slice()) {
            // Of several that were named for a region the first is taken.
            ([first, ..], _) if !named.is_empty() || projects.len() == 1 => chosen.push((*first).clone()),
            (_, [only]) => chosen.push((**only).clone()),
            _ => notes.push(format!(
                "{region} has several projects; name one in `projects` under [nebius] in the config file"
            )),
        }
    }
    (chosen, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str, name: &str, region: &str) -> Project {
        Project { id: id.to_owned(), name: name.to_owned(), region: region.to_owned() }
    }

    fn ids(all: &[Project], named: &[&str]) -> (Vec<String>, usize) {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let (chosen, notes) = choose(all, &named);
        (chosen.into_iter().map(|project| project.id).collect(), notes.len())
    }

    #[test]
    fn one_project_of_each_region() {
        let all = [
            project("project-1", "default-project-eu-north1", "eu-north1"),
            project("project-2", "research", "eu-north1"),
            project("project-3", "anything", "us-central1"),
            project("project-4", "a", "uk-south1"),
            project("project-5", "b", "uk-south1"),
        ];
        assert_eq!(ids(&all, &[]), (vec!["project-1".to_owned(), "project-3".to_owned()], 1));
        assert_eq!(
            ids(&all, &["research", "project-5"]),
            (vec!["project-2".to_owned(), "project-5".to_owned()], 0)
        );
        assert_eq!(ids(&all, &["nowhere"]), (Vec::new(), 1));
        assert_eq!(ids(&[], &[]), (Vec::new(), 0));
    }

    #[test]
    fn nothing_is_made_in_projects_that_are_being_closed() {
        let listed = |id: &str, region: &str, state: ProjectState| wire::Project {
            metadata: Some(wire::ResourceMetadata { id: id.to_owned(), ..Default::default() }),
            spec: Some(wire::ProjectSpec { region: region.to_owned() }),
            status: Some(wire::ProjectStatus { project_state: state.into() }),
        };
        let is_open = |id, region, state| read(&listed(id, region, state)).map(|(_, is_open)| is_open);
        for state in [ProjectState::Active, ProjectState::Created, ProjectState::Unspecified] {
            assert_eq!(is_open("project-1", "eu-north1", state), Some(true), "{state:?}");
        }
        for state in [ProjectState::Purging, ProjectState::Parking, ProjectState::Parked] {
            assert_eq!(is_open("project-1", "eu-north1", state), Some(false), "{state:?}");
        }
        assert_eq!(is_open("project-1", "", ProjectState::Active), Some(false));
        assert_eq!(is_open("../x", "eu-north1", ProjectState::Active), None);
    }
}
