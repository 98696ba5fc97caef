//! The sftp subsystem, in process, so that scp and sftp work where no `sftp-server` is installed.
//!
//! Protocol version 3 without extensions. Relative paths start at the home; `/root`, or `/home/ubuntu`, is the home, and
//! `/var/log/gpuprov-*` lies below it; any other absolute path is the real one, as for a command.

use std::collections::HashMap;
use std::fs::{self, File as StdFile, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use russh::Channel;
use russh::server::{Handle as Ssh, Msg};
use russh_sftp::protocol::{
    Attrs, Data, File, FileAttributes, Handle, Name, OpenFlags, Status, StatusCode, Version,
};
use russh_sftp::server::Handler;

/// Longest piece that is read at once.
const MOST_READ: u32 = 256 * 1024;
/// Entries in one answer to a directory read.
const ENTRIES: usize = 100;

/// Serves one channel until the client ends it.
pub(super) async fn serve(channel: Channel<Msg>, ssh: Ssh, home: PathBuf, user: &str) {
    let id = channel.id();
    let known = if user == "root" { "/root".to_owned() } else { format!("/home/{user}") };
    let (near, far) = tokio::io::duplex(1 << 20);
    // It runs in a task of its own and ends with our half of the pipe.
    russh_sftp::server::run(far, Files { home, known, open: HashMap::new(), next: 0 }).await;
    let (mut messages, writer) = channel.split();
    let (mut from, mut to) = tokio::io::split(near);
    let mut out = writer.make_writer();
    let answers = async {
        let _ = tokio::io::copy(&mut from, &mut out).await;
    };
    let requests = async {
        let _ = tokio::io::copy(&mut messages.make_reader(), &mut to).await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut to).await;
    };
    tokio::join!(answers, requests);
    let _ = ssh.exit_status_request(id, 0).await;
    let _ = ssh.eof(id).await;
    let _ = ssh.close(id).await;
}

enum Open {
    File(StdFile),
    Directory(Vec<File>),
}

struct Files {
    home: PathBuf,
    /// Its path as a real machine has it.
    known: String,
    open: HashMap<String, Open>,
    next: u64,
}

type Reply<T> = Result<T, StatusCode>;

impl Files {
    fn place(&self, path: &str) -> PathBuf {
        let inside = |rest: &str| self.home.join(rest.trim_start_matches('/'));
        let known = path.strip_prefix(&self.known).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(rest) = known {
            inside(rest)
        } else if path.starts_with("/var/log/gpuprov-") {
            inside(path)
        } else {
            self.home.join(path)
        }
    }

    fn keep(&mut self, id: u32, open: Open) -> Handle {
        self.next += 1;
        let handle = self.next.to_string();
        self.open.insert(handle.clone(), open);
        Handle { id, handle }
    }

    fn file(&self, handle: &str) -> Reply<&StdFile> {
        match self.open.get(handle) {
            Some(Open::File(file)) => Ok(file),
            _ => Err(StatusCode::Failure),
        }
    }
}

fn code(error: io::Error) -> StatusCode {
    match error.kind() {
        io::ErrorKind::NotFound => StatusCode::NoSuchFile,
        io::ErrorKind::PermissionDenied => StatusCode::PermissionDenied,
        _ => StatusCode::Failure,
    }
}

fn fine(id: u32) -> Status {
    Status { id, status_code: StatusCode::Ok, error_message: "Ok".into(), language_tag: "en-US".into() }
}

fn attributes(meta: &fs::Metadata) -> FileAttributes {
    FileAttributes {
        size: Some(meta.len()),
        uid: Some(meta.uid()),
        gid: Some(meta.gid()),
        permissions: Some(meta.mode()),
        atime: u32::try_from(meta.atime()).ok(),
        mtime: u32::try_from(meta.mtime()).ok(),
        ..FileAttributes::empty()
    }
}

fn set(path: &Path, attrs: &FileAttributes) -> io::Result<()> {
    if let Some(mode) = attrs.permissions {
        fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))?;
    }
    if attrs.size.is_none() && attrs.mtime.is_none() {
        return Ok(());
    }
    let file = StdFile::options().write(true).open(path).or_else(|_| StdFile::open(path))?;
    set_open(&file, attrs)
}

fn set_open(file: &StdFile, attrs: &FileAttributes) -> io::Result<()> {
    if let Some(mode) = attrs.permissions {
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
    }
    if let Some(size) = attrs.size {
        file.set_len(size)?;
    }
    if let (Some(atime), Some(mtime)) = (attrs.atime, attrs.mtime) {
        let point = |seconds: u32| UNIX_EPOCH + Duration::from_secs(u64::from(seconds));
        file.set_times(fs::FileTimes::new().set_accessed(point(atime)).set_modified(point(mtime)))?;
    }
    Ok(())
}

/// Resolves `.` and `..` without asking the file system, for paths that need not exist.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(name) => out.push(name),
            _ => {}
        }
    }
    out
}

impl Handler for Files {
    type Error = StatusCode;

    fn unimplemented(&self) -> StatusCode {
        StatusCode::OpUnsupported
    }

    async fn init(&mut self, _version: u32, _extensions: HashMap<String, String>) -> Reply<Version> {
        Ok(Version::new())
    }

    async fn open(
        &mut self,
        id: u32,
        name: String,
        flags: OpenFlags,
        attrs: FileAttributes,
    ) -> Reply<Handle> {
        let path = self.place(&name);
        let fresh = flags.contains(OpenFlags::CREATE) && !path.exists();
        let mut options = fs::OpenOptions::from(flags);
        if !flags.contains(OpenFlags::WRITE) && !flags.contains(OpenFlags::APPEND) {
            options.read(true);
        }
        let file = options.open(&path).map_err(code)?;
        if let Some(mode) = attrs.permissions.filter(|_| fresh) {
            file.set_permissions(Permissions::from_mode(mode & 0o777)).map_err(code)?;
        }
        Ok(self.keep(id, Open::File(file)))
    }

    async fn close(&mut self, id: u32, handle: String) -> Reply<Status> {
        self.open.remove(&handle).map(|_| fine(id)).ok_or(StatusCode::Failure)
    }

    async fn read(&mut self, id: u32, handle: String, offset: u64, len: u32) -> Reply<Data> {
        let mut data = vec![0; usize::try_from(len.min(MOST_READ)).unwrap_or(0)];
        let read = self.file(&handle)?.read_at(&mut data, offset).map_err(code)?;
        data.truncate(read);
        if read == 0 { Err(StatusCode::Eof) } else { Ok(Data { id, data }) }
    }

    async fn write(&mut self, id: u32, handle: String, offset: u64, data: Vec<u8>) -> Reply<Status> {
        self.file(&handle)?.write_all_at(&data, offset).map_err(code)?;
        Ok(fine(id))
    }

    async fn lstat(&mut self, id: u32, path: String) -> Reply<Attrs> {
        let meta = fs::symlink_metadata(self.place(&path)).map_err(code)?;
        Ok(Attrs { id, attrs: attributes(&meta) })
    }

    async fn stat(&mut self, id: u32, path: String) -> Reply<Attrs> {
        let meta = fs::metadata(self.place(&path)).map_err(code)?;
        Ok(Attrs { id, attrs: attributes(&meta) })
    }

    async fn fstat(&mut self, id: u32, handle: String) -> Reply<Attrs> {
        let meta = self.file(&handle)?.metadata().map_err(code)?;
        Ok(Attrs { id, attrs: attributes(&meta) })
    }

    async fn setstat(&mut self, id: u32, path: String, attrs: FileAttributes) -> Reply<Status> {
        set(&self.place(&path), &attrs).map(|()| fine(id)).map_err(code)
    }

    async fn fsetstat(&mut self, id: u32, handle: String, attrs: FileAttributes) -> Reply<Status> {
        set_open(self.file(&handle)?, &attrs).map(|()| fine(id)).map_err(code)
    }

    async fn opendir(&mut self, id: u32, path: String) -> Reply<Handle> {
        let directory = self.place(&path);
        let mut files = Vec::new();
        for name in [".", ".."] {
            if let Ok(meta) = fs::metadata(directory.join(name)) {
                files.push(File::new(name, attributes(&meta)));
            }
        }
        for entry in fs::read_dir(&directory).map_err(code)?.flatten() {
            if let Ok(meta) = entry.metadata() {
                files.push(File::new(entry.file_name().to_string_lossy(), attributes(&meta)));
            }
        }
        Ok(self.keep(id, Open::Directory(files)))
    }

    async fn readdir(&mut self, id: u32, handle: String) -> Reply<Name> {
        let Some(Open::Directory(left)) = self.open.get_mut(&handle) else { return Err(StatusCode::Failure) };
        let files: Vec<File> = left.drain(..left.len().min(ENTRIES)).collect();
        if files.is_empty() { Err(StatusCode::Eof) } else { Ok(Name { id, files }) }
    }

    async fn remove(&mut self, id: u32, path: String) -> Reply<Status> {
        fs::remove_file(self.place(&path)).map(|()| fine(id)).map_err(code)
    }

    async fn mkdir(&mut self, id: u32, path: String, attrs: FileAttributes) -> Reply<Status> {
        let path = self.place(&path);
        fs::create_dir(&path).map_err(code)?;
        if let Some(mode) = attrs.permissions {
            fs::set_permissions(&path, Permissions::from_mode(mode & 0o777)).map_err(code)?;
        }
        Ok(fine(id))
    }

    async fn rmdir(&mut self, id: u32, path: String) -> Reply<Status> {
        fs::remove_dir(self.place(&path)).map(|()| fine(id)).map_err(code)
    }

    async fn realpath(&mut self, id: u32, path: String) -> Reply<Name> {
        let path = self.place(&path);
        let real = fs::canonicalize(&path).unwrap_or_else(|_| plain(&path));
        Ok(Name { id, files: vec![File::dummy(real.to_string_lossy())] })
    }

    async fn rename(&mut self, id: u32, old: String, new: String) -> Reply<Status> {
        fs::rename(self.place(&old), self.place(&new)).map(|()| fine(id)).map_err(code)
    }

    async fn readlink(&mut self, id: u32, path: String) -> Reply<Name> {
        let target = fs::read_link(self.place(&path)).map_err(code)?;
        Ok(Name { id, files: vec![File::dummy(target.to_string_lossy())] })
    }

    // OpenSSH sends target and link in the reverse of the draft's order, and servers follow it.
    async fn symlink(&mut self, id: u32, target: String, link: String) -> Reply<Status> {
        std::os::unix::fs::symlink(target, self.place(&link)).map(|()| fine(id)).map_err(code)
    }
}
