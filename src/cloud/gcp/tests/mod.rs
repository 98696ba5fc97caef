mod bodies;
mod create;
mod delete;
mod late;
mod looks;
mod ports;
mod tokens;
