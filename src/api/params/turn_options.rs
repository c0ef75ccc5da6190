//! The options of turns in the parameters of three methods. Each option is a parameter of its own, so that errors can
//! name it.

/// Parameters with the options of turns after their own fields; see [`types::with_turn_options`]. Parameters by position
/// follow the lists in `api::methods::session`, which keep the order of older versions.
macro_rules! params {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            required { $($(#[$required_attribute:meta])* pub $required:ident: $required_value:ty,)+ }
            optional { $($(#[$field_attribute:meta])* pub $field:ident: $value:ty,)+ }
        }
        options { $($(#[$doc:meta])* $option:ident: $option_value:ty => $($place:ident).+;)+ }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$required_attribute])* pub $required: $required_value,)+
            $($(#[$field_attribute])* pub $field: $value,)+
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $option: Option<$option_value>,
            )+
        }

        impl $name {
            /// These parameters without any optional one.
            #[must_use]
            pub fn new($($required: $required_value),+) -> Self {
                Self { $($required,)+ $($field: Default::default(),)+ $($option: None,)+ }
            }

            /// The options of turns in these parameters.
            #[must_use]
            pub fn options(&self) -> types::turn_options::TurnOptions {
                types::turn_options::TurnOptions {
                    $($option: self.$option.clone(),)+
                    ..Default::default()
                }
            }

            /// These parameters with other options of turns.
            #[must_use]
            pub fn with_options(self, options: types::turn_options::TurnOptions) -> Self {
                Self { $($option: options.$option,)+ ..self }
            }
        }
    };
}
pub(super) use params;
