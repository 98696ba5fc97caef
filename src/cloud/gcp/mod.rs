//! Google Cloud (temporary).
mod places;
mod prices;
mod quotas;
mod shapes;
